/** Card of a lane: bucket, figures and quota. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { isRefusal } from "../api/refusal.ts";
import { formatCount } from "../format.ts";
import { Notice } from "../ui/notice.tsx";
import { BucketDrawing } from "./bucket-drawing.tsx";
import { useFrame, write } from "./frame.ts";
import { isWindow, type Lane, type LaneChange, limitOf, NAME_LENGTH_MAX, quotaWords } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { QuotaForm } from "./quota-form.tsx";
import { WindowStrip } from "./window-strip.tsx";
import { fullLabel, fullWord, levelFigure, levelUnit, nextLabel, outlook, refillWords } from "./words.ts";

/** Update interval of the figures, slow enough to read. */
const FIGURES_MS = 100;
/** Update interval of the meter for screen readers. */
const METER_MS = 1000;

/** Fields of the quota form. */
const FIELDS = ["algorithm", "capacity", "refill_rate", "refill_interval", "refill", "cost"];

interface LaneCardProps {
  readonly state: LaneState;
  readonly isAlone: boolean;
  /** The service does not answer. */
  readonly isUnanswered: boolean;
  readonly now: () => number;
  readonly onChange: (change: LaneChange) => void;
  readonly onSend: () => void;
  readonly onRemove: () => void;
}

export function LaneCard(props: LaneCardProps): JSX.Element {
  const { state, isAlone, isUnanswered, now, onChange, onSend, onRemove } = props;
  const { lane, problem } = state;
  const [isOpen, setOpen] = useState(false);
  const isElsewhere = problem !== undefined && !FIELDS.includes(problem.field ?? "");
  // The view shows a refusal once for all clients.
  const isRefused = problem !== undefined && isRefusal(problem.status);
  return (
    <section class="panel pg-lane" aria-label={lane.name || "Unnamed client"}>
      <LaneHead lane={lane} isAlone={isAlone} onChange={onChange} onRemove={onRemove} />
      <div class="pg-lane-body">
        {isElsewhere && !isRefused && <Notice kind="error">{problem.detail}</Notice>}
        <div class="pg-bucket">
          <BucketDrawing state={state} now={now} />
          <div class="pg-figures">
            <Figures state={state} isUnanswered={isUnanswered} now={now} />
            {!isAlone && (
              <button
                type="button"
                class="button pg-lane-send"
                aria-label={`Send one from ${lane.name}`}
                onClick={onSend}
              >
                Send one
              </button>
            )}
          </div>
          {isWindow(lane) && <WindowStrip state={state} now={now} />}
        </div>
        {isAlone ? (
          <QuotaForm state={state} onChange={onChange} />
        ) : (
          <details
            class="pg-details"
            open={isOpen || (problem !== undefined && !isElsewhere)}
            onToggle={(event) => setOpen(event.currentTarget.open)}
          >
            <summary>{quotaWords(lane)}</summary>
            <QuotaForm state={state} onChange={onChange} />
          </details>
        )}
      </div>
    </section>
  );
}

interface HeadProps {
  readonly lane: Lane;
  readonly isAlone: boolean;
  readonly onChange: (change: LaneChange) => void;
  readonly onRemove: () => void;
}

function LaneHead({ lane, isAlone, onChange, onRemove }: HeadProps): JSX.Element {
  return (
    <div class="pg-lane-head">
      <input
        class="input pg-name"
        aria-label="Client name"
        value={lane.name}
        maxLength={NAME_LENGTH_MAX}
        onInput={({ currentTarget: { value: name } }) => onChange((lane) => ({ ...lane, name }))}
      />
      {!isAlone && (
        <button type="button" class="button quiet pg-remove" aria-label={`Remove ${lane.name}`} onClick={onRemove}>
          ✕
        </button>
      )}
    </div>
  );
}

type FiguresProps = Pick<LaneCardProps, "state" | "isUnanswered" | "now">;

/** Figures that change with time, updated without rendering. */
function Figures({ state, isUnanswered, now }: FiguresProps): JSX.Element {
  const figure = useRef<HTMLDivElement>(null);
  const meter = useRef<HTMLMeterElement>(null);
  const waits = useRef<HTMLDListElement>(null);
  const next = useRef<HTMLElement>(null);
  const full = useRef<HTMLElement>(null);
  const passing = useRef<HTMLDivElement>(null);
  const { lane } = state;
  const limit = state.reading?.limit ?? limitOf(lane);
  // Longer figures have a smaller font.
  const places = levelFigure(lane, limit).length;
  useFrame(() => {
    const at = now();
    const level = state.level(at);
    write(figure.current, level === undefined ? "–" : levelFigure(lane, level));
    const words = refillWords(state, at);
    write(next.current, words?.next ?? "");
    write(full.current, words?.full ?? "");
    waits.current?.classList.toggle("is-full", words === undefined);
    const { text, isPassing } = outlook(state, at, isUnanswered);
    write(passing.current, text);
    passing.current?.classList.toggle("is-not", isPassing === false);
    passing.current?.classList.toggle("is-unknown", isPassing === undefined);
  }, FIGURES_MS);
  useFrame(() => {
    const level = state.level(now());
    if (level !== undefined && meter.current !== null) meter.current.value = Math.floor(level + 1e-6);
  }, METER_MS);
  return (
    <>
      <div class="pg-level">
        <meter ref={meter} class="visually-hidden" aria-label={`Left for ${lane.name}`} min={0} max={limit} />
        <div ref={figure} class="pg-level-figure" style={{ "--places": places }} aria-hidden="true" />
        <div class="muted small">{levelUnit(lane, limit)}</div>
        <div class="pg-counts">
          <span class="badge allowed">✓ {formatCount(state.allowed)} allowed</span>
          <span class="badge denied">✗ {formatCount(state.denied)} denied</span>
        </div>
      </div>
      <div ref={passing} class="pg-passing is-unknown" />
      <dl ref={waits} class="pg-waits">
        <div class="pg-all">
          <dt>{fullWord(lane)}</dt>
          <dd />
        </div>
        <div>
          <dt>{nextLabel(lane)}</dt>
          <dd ref={next} />
        </div>
        <div>
          <dt>{fullLabel(lane)}</dt>
          <dd ref={full} />
        </div>
      </dl>
    </>
  );
}
