/** What is sent, from all clients at the same moment. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { formatCount } from "../format.ts";
import { type Bench, BURST, IN_FLIGHT_MAX } from "./bench.ts";
import { LANES_MAX, RATE_MAX } from "./lane.ts";
import { OUTCOMES } from "./words.ts";

export function Traffic({ bench }: { readonly bench: Bench }): JSX.Element {
  const id = useId();
  return (
    <section class="panel pg-traffic" aria-label="Traffic">
      <div class="pg-send">
        <button type="button" class="button primary" onClick={() => bench.send(1)}>
          Send one
        </button>
        <button type="button" class="button" onClick={() => bench.send(BURST)}>
          Burst ×{BURST}
        </button>
      </div>
      <div class="pg-steady">
        <label for={id}>
          Steady <output class="pg-rate">{bench.rate} per second</output>
        </label>
        <input
          id={id}
          type="range"
          min={0}
          max={RATE_MAX}
          value={bench.rate}
          aria-label="Steady rate, requests per second"
          aria-valuetext={`${bench.rate} per second`}
          onInput={(event) => bench.setRate(Number(event.currentTarget.value))}
        />
        <button
          type="button"
          class="button"
          aria-pressed={bench.isSteady}
          onClick={() => (bench.isSteady ? bench.stopSteady() : bench.startSteady(() => document.hidden))}
        >
          {bench.isSteady ? "■ Stop" : "▶ Start"}
        </button>
      </div>
      <p class="visually-hidden" role="status">
        {lastWords(bench)}
      </p>
      {/* Of a scenario it is said beside the scenario. */}
      {bench.notSent > 0 && bench.scenario === "" && (
        <p class="small pg-not-sent" role="status">
          {notSentWords(bench)}
        </p>
      )}
    </section>
  );
}

export function notSentWords({ notSent }: Bench): string {
  return `${formatCount(notSent)} not sent: ${IN_FLIGHT_MAX} were under way, or the page was held up.`;
}

/** What came of the last request, for those who cannot see it; not while requests go out by themselves. */
function lastWords({ log: [last], isSteady, playing }: Bench): string {
  if (last === undefined || isSteady || playing !== undefined) return "";
  const left = last.decision === undefined ? "" : `, ${formatCount(last.decision.remaining)} left`;
  return `${last.laneName}: ${OUTCOMES[last.outcome].word}${left}`;
}

/** More clients, or one under several algorithms. */
export function LaneButtons({ bench }: { readonly bench: Bench }): JSX.Element {
  return (
    <>
      <button type="button" class="button" disabled={bench.states.length >= LANES_MAX} onClick={() => bench.addLane()}>
        + Client
      </button>
      <button type="button" class="button" onClick={() => bench.compare()}>
        Compare algorithms
      </button>
      <button type="button" class="button" onClick={() => bench.startOver()}>
        Start over
      </button>
    </>
  );
}
