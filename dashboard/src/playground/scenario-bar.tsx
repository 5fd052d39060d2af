/** Selection of scenarios, with the description of the selected one, or of a bucket in free play. */

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
  // On a phone, the selected scenario may be outside the viewport.
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
        <strong>Tokens are added</strong> at a steady rate.
      </li>
      <li>
        <strong>The bucket holds them</strong> up to its capacity, which is the burst it allows.
      </li>
      <li>
        <strong>A request takes its cost.</strong> If too few tokens are left, it takes none and is denied, with the
        time to retry.
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
          {model.hasMissedEdge && "Answers were slow: the first burst crossed the window boundary. Play again. "}
          {model.notSent > 0 && notSentWords(model)}
        </p>
      </div>
    </div>
  );
}

/** Scrolls on a phone, so that the description and the lanes are visible together. */
function bringUp(text: HTMLElement | null): void {
  if (!matchMedia("(max-width: 40rem)").matches) return;
  text?.scrollIntoView({ block: "start", behavior: isCalm() ? "auto" : "smooth" });
}

/** Progress of the scenario; before its start, the wait for a window boundary. */
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
  if (now < playing.begins) return `waiting for a window boundary: ${countdown(playing.begins - now)}`;
  return now < playing.ends ? `${countdown(playing.ends - now)} left` : "done";
}
