/** Scenarios to choose from, what to watch in the one that is chosen, and how a bucket works where none is. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { DEFAULT_SETUP } from "./codec.ts";
import { isCalm, useFrame, write } from "./frame.ts";
import type { PlaygroundModel } from "./model.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { notSentWords } from "./traffic.tsx";
import { countdown } from "./words.ts";

export function ScenarioBar({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  const scenario = SCENARIOS.find(({ id }) => id === model.scenario);
  const chips = useRef<HTMLDivElement>(null);
  // On a phone, the one that is chosen may be out of sight.
  useEffect(() => {
    chips.current?.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [scenario]);
  return (
    <section class="pg-scenarios" aria-label="Scenarios">
      <div ref={chips} class="pg-chips">
        <button
          type="button"
          class="pg-chip"
          aria-pressed={scenario === undefined}
          onClick={() => model.load({ ...DEFAULT_SETUP, rate: model.rate })}
        >
          Free play
        </button>
        {SCENARIOS.map((other) => (
          <button
            key={other.id}
            type="button"
            class="pg-chip"
            aria-pressed={other === scenario}
            onClick={() => model.choose(other)}
          >
            {other.title}
          </button>
        ))}
      </div>
      {scenario === undefined ? <HowItWorks /> : <Chosen model={model} scenario={scenario} />}
    </section>
  );
}

function HowItWorks(): JSX.Element {
  return (
    <ol class="pg-how" aria-label="How it works">
      <li>
        <strong>Time drips tokens in</strong> at a steady rate,
      </li>
      <li>
        <strong>the bucket keeps them</strong>, up to its capacity: that is the burst it allows,
      </li>
      <li>
        <strong>a request takes its cost</strong>, or, where too few are left, nothing: it is denied, and told when to
        come back.
      </li>
    </ol>
  );
}

function Chosen({ model, scenario }: { readonly model: PlaygroundModel; readonly scenario: Scenario }): JSX.Element {
  const { playing } = model;
  const text = useRef<HTMLDivElement>(null);
  return (
    <div ref={text} class="pg-chosen">
      <p class="pg-watch">{scenario.watch}</p>
      <div class="pg-play">
        {playing === undefined ? (
          <button
            type="button"
            class="button primary"
            onClick={() => {
              void model.playScenario();
              bringUp(text.current);
            }}
          >
            ▶ Play
          </button>
        ) : (
          <button type="button" class="button" onClick={() => model.stop()}>
            ■ Stop
          </button>
        )}
        {playing !== undefined && <Progress model={model} />}
        <p class="small pg-not-sent" role="status">
          {model.hasMissedEdge && "The first burst ran past the edge, as answers were slow. Play again. "}
          {model.notSent > 0 && notSentWords(model)}
        </p>
      </div>
    </div>
  );
}

/** On a phone, what is played and what it says to watch are in sight together only from here on. */
function bringUp(text: HTMLElement | null): void {
  if (!matchMedia("(max-width: 40rem)").matches) return;
  text?.scrollIntoView({ block: "start", behavior: isCalm() ? "auto" : "smooth" });
}

/** How far it has come; before it begins, what it waits for. */
function Progress({ model }: { readonly model: PlaygroundModel }): JSX.Element {
  const bar = useRef<HTMLProgressElement>(null);
  const words = useRef<HTMLSpanElement>(null);
  const { playing } = model;
  useFrame(() => {
    const now = model.now();
    const done = playing === undefined ? 0 : (now - playing.begins) / Math.max(1, playing.ends - playing.begins);
    if (bar.current !== null) bar.current.value = Math.min(Math.max(done, 0), 1);
    write(words.current, progressWords(model, now));
  }, 50);
  return (
    <>
      <progress ref={bar} max={1} aria-label="Progress of the scenario" />
      <span ref={words} class="muted small pg-progress" />
    </>
  );
}

function progressWords({ playing }: PlaygroundModel, now: number): string {
  if (playing === undefined) return "";
  if (now < playing.begins) return `waits for an edge: ${countdown(playing.begins - now)}`;
  return now < playing.ends ? `${countdown(playing.ends - now)} to go` : "done";
}
