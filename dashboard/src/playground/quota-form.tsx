/** Form of a lane's quota. Changes take effect with the next request. */

import type { JSX } from "preact";
import { Field } from "../ui/field.tsx";
import { FigureInput } from "./figure-input.tsx";
import {
  ALGORITHM_NAMES,
  ALGORITHMS,
  isInterval,
  isWindow,
  type Lane,
  type LaneChange,
  PERIODS,
  PLANS,
  periodName,
  type Quota,
  REFILLS,
  withPlan,
  withQuota,
} from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { stopsUpTo } from "./stops.ts";

const CAPACITY_STOPS = stopsUpTo(10_000);
const TOKEN_STOPS = stopsUpTo(1000);

const ALGORITHM_HINTS: Record<Lane["algorithm"], string> = {
  token_bucket: "Collects tokens while idle, so that bursts pass.",
  fixed_window: "Counts per window of the clock. Around a boundary, twice the limit can pass.",
  sliding_window: "Logs every request for one period. Exact, but needs memory for each.",
  sliding_counter: "Weights the counts of two windows. Approximates the sliding window.",
  leaky_bucket: "A queue drained at a steady rate. A grant includes the time to wait.",
};

interface QuotaFormProps {
  readonly state: LaneState;
  readonly onChange: (change: LaneChange) => void;
}

export function QuotaForm({ state, onChange }: QuotaFormProps): JSX.Element {
  const { lane, problem } = state;
  const change = (quota: Partial<Quota>) => onChange((lane) => withQuota(lane, quota));
  const wrong = (field: string) => (problem?.field === field ? problem.detail.replace(`${field}: `, "") : undefined);
  return (
    <div class="pg-quota">
      <div class="pg-pair">
        <PlanChoice lane={lane} onChange={onChange} />
        <AlgorithmChoice lane={lane} onChange={change} error={wrong("algorithm")} />
      </div>
      <p class="muted small">{ALGORITHM_HINTS[lane.algorithm]}</p>
      {!isWindow(lane) && (
        <FigureInput
          label="Capacity"
          value={lane.capacity}
          onValue={(capacity) => change({ capacity })}
          error={wrong("capacity")}
          stops={CAPACITY_STOPS}
        />
      )}
      <FigureInput
        label={isWindow(lane) ? "Limit" : lane.algorithm === "leaky_bucket" ? "Drain rate" : "Refill"}
        value={lane.tokens}
        onValue={(tokens) => change({ tokens })}
        error={wrong("refill_rate") ?? wrong("refill_interval")}
        stops={TOKEN_STOPS}
      >
        <Period lane={lane} onChange={change} />
      </FigureInput>
      <div class="pg-pair">
        {lane.algorithm === "token_bucket" && <RefillChoice lane={lane} onChange={change} error={wrong("refill")} />}
        <FigureInput
          label="Cost of a request"
          value={lane.cost}
          onValue={(cost) => onChange((lane) => ({ ...lane, cost }))}
          error={wrong("cost")}
        />
      </div>
    </div>
  );
}

interface ChoiceProps {
  readonly lane: Lane;
  readonly onChange: (quota: Partial<Quota>) => void;
  readonly error: string | undefined;
}

function AlgorithmChoice({ lane, onChange, error }: ChoiceProps): JSX.Element {
  return (
    <Field label="Algorithm" error={error}>
      {(input) => (
        <select
          {...input}
          class="input"
          value={lane.algorithm}
          onChange={({ currentTarget }) => {
            const algorithm = ALGORITHMS.find((name) => name === currentTarget.value);
            if (algorithm !== undefined) onChange({ algorithm });
          }}
        >
          {ALGORITHMS.map((name) => (
            <option key={name} value={name}>
              {ALGORITHM_NAMES[name]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function PlanChoice({ lane, onChange }: { lane: Lane; onChange: (change: LaneChange) => void }): JSX.Element {
  return (
    <Field label="Plan" hint={lane.plan === "own" ? undefined : "from the starter rules"}>
      {(input) => (
        <select
          {...input}
          class="input"
          value={lane.plan}
          onChange={({ currentTarget }) => {
            const plan = PLANS.find((name) => name === currentTarget.value);
            if (plan !== undefined) onChange((lane) => withPlan(lane, plan));
          }}
        >
          {PLANS.map((plan) => (
            <option key={plan} value={plan}>
              {plan === "own" ? "custom quota" : `${plan} (example)`}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function Period({ lane, onChange }: { lane: Lane; onChange: (quota: Partial<Quota>) => void }): JSX.Element {
  const isUsual = PERIODS.some(([seconds]) => seconds === lane.period);
  const choices = isUsual ? PERIODS : [[lane.period, periodName(lane.period)] as const, ...PERIODS];
  return (
    <select
      class="input pg-period"
      aria-label="Period"
      value={String(lane.period)}
      onChange={(event) => onChange({ period: Number(event.currentTarget.value) })}
    >
      {choices.map(([seconds, name]) => (
        <option key={seconds} value={String(seconds)}>
          per {name}
        </option>
      ))}
    </select>
  );
}

function RefillChoice({ lane, onChange, error }: ChoiceProps): JSX.Element {
  const hint = isInterval(lane) ? "all at once per period" : undefined;
  return (
    <Field label="Refill mode" hint={hint} error={error}>
      {(input) => (
        <select
          {...input}
          class="input"
          value={lane.refill}
          onChange={({ currentTarget }) => {
            const refill = REFILLS.find((name) => name === currentTarget.value);
            if (refill !== undefined) onChange({ refill });
          }}
        >
          <option value="continuous">continuous</option>
          <option value="interval">interval</option>
        </select>
      )}
    </Field>
  );
}
