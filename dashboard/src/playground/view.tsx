/** The playground: to understand a bucket by playing with it. */

import type { JSX } from "preact";
import { Copy } from "../ui/copy.tsx";
import { Notice } from "../ui/notice.tsx";
import type { Bench } from "./bench.ts";
import { LaneCard } from "./lane-card.tsx";
import { Log } from "./log.tsx";
import "./playground.css";
import "./lane.css";
import "./panels.css";
import "./compact.css";
import { Response } from "./response.tsx";
import { ScenarioBar } from "./scenario-bar.tsx";
import { Timeline } from "./timeline.tsx";
import { LaneButtons, Traffic } from "./traffic.tsx";
import { linkTo, useBench } from "./use-bench.ts";

export function PlaygroundView(): JSX.Element {
  const bench = useBench();
  const now = () => bench.now();
  const isAlone = bench.states.length === 1;
  return (
    <div
      class={`playground ${bench.scenario === "" ? "" : "has-scenario"} ${bench.playing === undefined ? "" : "is-playing"}`}
    >
      <div class="view-head">
        <div>
          <h1>Playground</h1>
          <p>
            Real requests to this service (<code>POST /v1/take</code>). No rule in force is touched.
          </p>
        </div>
        <div class="pg-tools">
          <LaneButtons bench={bench} />
          <Copy text={() => linkTo(bench)}>Copy link</Copy>
        </div>
      </div>
      <ScenarioBar bench={bench} />
      {bench.trouble !== undefined && <Notice kind="error">{bench.trouble.detail} It is asked again and again.</Notice>}
      <div class="pg-bench">
        <div class="pg-lanes" data-count={bench.states.length}>
          {bench.states.map((state) => (
            <LaneCard
              key={bench.keyOf(state)}
              state={state}
              isAlone={isAlone}
              isUnanswered={bench.trouble !== undefined}
              now={now}
              onChange={(change) => bench.change(state.id, change)}
              onSend={() => bench.send(1, state.id)}
              onRemove={() => remove(bench, state.id)}
            />
          ))}
        </div>
        <div class="pg-side">
          <Traffic bench={bench} />
          <Response bench={bench} />
        </div>
        <Timeline states={bench.states} now={now} />
        <Log log={bench.log} hasNames={!isAlone} />
      </div>
    </div>
  );
}

/** Takes a client away, and the focus, which would be lost with it, to the first one that stays. */
function remove(bench: Bench, id: number): void {
  bench.removeLane(id);
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".pg-lanes .pg-name")?.focus());
}
