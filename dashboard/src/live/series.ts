/** Series of the charts: granted and denied decisions per second and group. */

import type { DecisionCounts, LiveRule } from "../api/types.ts";
import { busiest } from "./figures.ts";
import { HISTORY_S, type PastTick } from "./ticks.ts";

/** The most rules with their own colour; the others are summed. */
export const COLOURS = 8;
/** The most characters of a key pattern in the legend; the table shows all. */
const NAME_CHARS_MAX = 40;
/** Longer gaps between ticks mean that a tick is missing. */
const HOLE_MS_MAX = 2000;

/** Scopes in the order in which a verdict names them. */
const SCOPES = ["global", "ip", "endpoint", "user", "custom"] as const;

/** Rates per second, oldest first; null if unknown. */
export type Rate = (number | null)[];

export interface Group {
  readonly key: string;
  readonly name: string;
  /** Text beside the name: the plan. */
  readonly about: string;
  readonly isShadow: boolean;
  /** CSS variable of its colour. */
  readonly colour: string;
  readonly allowed: Rate;
  readonly denied: Rate;
}

/** Seconds on the time axis: 0 is now, -1 the second before. */
export const SECONDS: readonly number[] = Array.from({ length: HISTORY_S }, (_, at) => at - HISTORY_S + 1);

/** Colours by rule id. A rule keeps its colour while it is shown. */
export type Colours = ReadonlyMap<number, number>;

/** Assigns colours to the wanted rules; those that had one keep it. */
export function coloursOf(before: Colours, wanted: readonly number[]): Colours {
  const shown = wanted.slice(0, COLOURS);
  const colours = new Map<number, number>();
  for (const id of shown) {
    const colour = before.get(id);
    if (colour !== undefined) colours.set(id, colour);
  }
  const taken = new Set(colours.values());
  let next = 0;
  for (const id of shown) {
    if (colours.has(id)) continue;
    while (taken.has(next)) next += 1;
    taken.add(next);
    colours.set(id, next);
  }
  return colours;
}

/** Groups by scope, of enforced rules, and one for buckets without a rule if there are any. */
export function byTier(history: readonly PastTick[]): Group[] {
  const groups = SCOPES.map((scope, at) => ({
    key: scope,
    name: scope,
    about: "",
    isShadow: false,
    colour: colourName(at),
    ...ratesOf(history, ({ tiers }) => tiers.filter((tier) => tier.scope === scope)),
  }));
  if (!history.some(({ take }) => take.granted + take.denied + take.never > 0)) return groups;
  const take = ratesOf(history, ({ take }) => [take]);
  return [...groups, { key: "take", name: "take", about: "", isShadow: false, colour: colourName(5), ...take }];
}

/** Groups of the busiest rules in the order of their ids, and the sum of the others if there are any. */
export function byRule(history: readonly PastTick[], colours: Colours): Group[] {
  const shown = busiest(history).filter(({ rule_id }) => colours.has(rule_id));
  const groups = shown
    .sort((a, b) => a.rule_id - b.rule_id)
    .map((rule) => ({
      key: String(rule.rule_id),
      name: `${rule.rule_id} ${cut(rule.key_pattern)}`,
      about: rule.plan ?? "",
      isShadow: rule.mode === "shadow",
      colour: colourName(colours.get(rule.rule_id) ?? 0),
      ...ratesOf(history, ({ rules }) => rules.filter(({ rule_id }) => rule_id === rule.rule_id)),
    }));
  const isOther = ({ rule_id }: LiveRule) => !colours.has(rule_id);
  const others = ratesOf(history, ({ rules, other_rules }) => [...rules.filter(isOther), other_rules]);
  if (![...others.allowed, ...others.denied].some((rate) => rate !== null && rate > 0)) return groups;
  return [...groups, { key: "others", name: "others", about: "", isShadow: false, colour: "--series-rest", ...others }];
}

/** Decisions in a slot of the time axis, and the seconds that they cover. */
interface Slot {
  granted: number;
  denied: number;
  seconds: number;
}

function ratesOf(
  history: readonly PastTick[],
  pick: (past: PastTick) => readonly DecisionCounts[],
): Pick<Group, "allowed" | "denied"> {
  const slots: (Slot | undefined)[] = SECONDS.map(() => undefined);
  const now = history.at(-1)?.at ?? 0;
  let before: { readonly at: number; readonly slot: number } | undefined;
  for (const past of history) {
    if (past.seconds <= 0) continue;
    const slot = HISTORY_S - 1 - Math.round((now - past.at) / 1000);
    const counts = slotOf(past.seconds, pick(past));
    if (slot >= 0) slots[slot] = together(slots[slot], counts);
    // Ticks are not exactly a second apart: an empty slot between two ticks is covered by the later one.
    const isHole = before !== undefined && slot - before.slot === 2 && past.at - before.at < HOLE_MS_MAX;
    if (isHole && slot > 0) slots[slot - 1] = counts;
    before = { at: past.at, slot };
  }
  return {
    allowed: slots.map((slot) => (slot === undefined ? null : slot.granted / slot.seconds)),
    denied: slots.map((slot) => (slot === undefined ? null : slot.denied / slot.seconds)),
  };
}

function slotOf(seconds: number, counts: readonly DecisionCounts[]): Slot {
  const slot = { granted: 0, denied: 0, seconds };
  for (const { granted, denied, never } of counts) {
    slot.granted += granted;
    slot.denied += denied + never;
  }
  return slot;
}

/** Merges two ticks in one slot: the seconds add up, so the rate does not. */
function together(a: Slot | undefined, b: Slot): Slot {
  if (a === undefined) return b;
  return { granted: a.granted + b.granted, denied: a.denied + b.denied, seconds: a.seconds + b.seconds };
}

/** Running sums of the rows, for a stacked chart that is drawn from the last row to the first. */
export function stacked(rows: readonly Rate[]): Rate[] {
  const sums: Rate[] = [];
  for (const row of rows) {
    const below = sums.at(-1);
    sums.push(row.map((rate, at) => (rate === null ? null : rate + (below?.[at] ?? 0))));
  }
  return sums;
}

function colourName(at: number): string {
  return `--series-${(at % COLOURS) + 1}`;
}

function cut(text: string): string {
  const characters = [...text];
  return characters.length <= NAME_CHARS_MAX ? text : `${characters.slice(0, NAME_CHARS_MAX - 1).join("")}…`;
}
