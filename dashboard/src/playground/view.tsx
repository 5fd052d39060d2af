/** Playground view: shows the behaviour of buckets with real requests. */

import type { JSX } from "preact";
import { CallerRefusal } from "../caller-refusal.tsx";
import { Copy } from "../ui/copy.tsx";
import { Notice } from "../ui/notice.tsx";
import { LaneCard } from "./lane-card.tsx";
import { Log } from "./log.tsx";
import type { PlaygroundModel } from "./model.ts";
import "./playground.css";
import "./lane.css";
import "./panels.css";
import "./compact.css";
import { Response } from "./response.tsx";
import { ScenarioBar } from "./scenario-bar.tsx";
import { Timeline } from "./timeline.tsx";
import { LaneButtons, Traffic } from "./traffic.tsx";
import { linkTo, useModel } from "./use-model.ts";

export function PlaygroundView(): JSX.Element {
  const model = useModel();
  const now = () => model.now();
  const isAlone = model.states.length === 1;
  return (
    <div
      class={`playground ${model.scenario === "" ? "" : "has-scenario"} ${model.playing === undefined ? "" : "is-playing"}`}
    >
      <div class="view-head">
        <div>
          <h1>Playground</h1>
          <p>
            Sends real requests to this service (<code>POST /v1/take</code>). Rules are not affected.
          </p>
        </div>
        <div class="pg-tools">
          <LaneButtons model={model} />
          <Copy text={() => linkTo(model)}>Copy link</Copy>
        </div>
      </div>
      <ScenarioBar model={model} />
      {model.outage !== undefined && <Notice kind="error">{model.outage.detail}. The page keeps retrying.</Notice>}
      {model.refusal !== undefined && <CallerRefusal status={model.refusal} />}
      <div class="pg-bench">
        <div class="pg-lanes" data-count={model.states.length}>
          {model.states.map((state) => (
            <LaneCard
              key={model.keyOf(state)}
              state={state}
              isAlone={isAlone}
              isUnanswered={model.outage !== undefined}
              now={now}
              onChange={(change) => model.change(state.id, change)}
              onSend={() => model.send(1, state.id)}
              onRemove={() => remove(model, state.id)}
            />
          ))}
        </div>
        <div class="pg-side">
          <Traffic model={model} />
          <Response model={model} />
        </div>
        <Timeline states={model.states} now={now} />
        <Log log={model.log} hasNames={!isAlone} />
      </div>
    </div>
  );
}

/** Removes a client and focuses the first one that stays. */
function remove(model: PlaygroundModel, id: number): void {
  model.removeLane(id);
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".pg-lanes .pg-name")?.focus());
}
