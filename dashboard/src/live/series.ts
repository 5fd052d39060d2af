/** What the charts draw: for every second and group, how much was allowed and how much denied. */

import type { DecisionCounts, LiveRule } from "../api/types.ts";
import { busiest } from "./figures.ts";
import { HISTORY_S, type PastTick } from "./ticks.ts";

/** The most rules with a colour of their own; the others are summed. */
export const COLOURS = 8;
/** The most characters of a key pattern in a legend; the table has all of them. */
const NAME_CHARS_MAX = 40;
/** Ticks that are further apart have missed one: of the time between them nothing is known. */
const HOLE_MS_MAX = 2000;

/** The scopes, in the order in which a verdict names them. */
const SCOPES = ["global", "ip", "endpoint", "user", "custom"] as const;

/** Rates per second, the oldest first; null where nothing is known. */
export type Rate = (number | null)[];

export interface Group {
  readonly key: string;
  readonly name: string;
  /** What has to be said beside the name, such as the plan. */
  readonly about: string;
  readonly isShadow: boolean;
  /** The name of its colour. */
  readonly colour: string;
  readonly allowed: Rate;
  readonly denied: Rate;
}

/** The seconds of the charts: 0 is now, -1 the second before. */
export const SECONDS: readonly number[] = Array.from({ length: HISTORY_S }, (_, at) => at - HISTORY_S + 1);

/** Which colour a rule has. One that is shown keeps it, whoever comes and goes around it. */
export type Colours = ReadonlyMap<number, number>;

/** Gives the wanted rules colours, and those that had one the same again. */
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

/** Enforced rules by their scope, and buckets without a rule if there are any. */
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

/** The busiest rules, each by itself, in the order of their ids, and the sum of the others if there are any. */
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

/** What was decided in a slot, and in how many seconds. */
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
    // Ticks are not exactly a second apart: what was decided in the slot between these two is in the later one.
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

/** Two ticks in one slot are more seconds, and not a higher rate. */
function together(a: Slot | undefined, b: Slot): Slot {
  if (a === undefined) return b;
  return { granted: a.granted + b.granted, denied: a.denied + b.denied, seconds: a.seconds + b.seconds };
}

/** Sums from the first row on, so that drawn over each other, the last first, they are a stack. */
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
