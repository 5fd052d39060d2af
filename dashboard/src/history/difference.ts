/** Difference between the JSON before and after an act, column by column. */

import type { Rule } from "../api/types.ts";
import { formatCount, formatTime, formatWait } from "../format.ts";
import { changesOf } from "../rules/columns.ts";
import { timeOf, timeWords } from "../rules/time.ts";
import type { ColumnChange } from "../ui/column-changes.tsx";
import { visible, visibleLines } from "../ui/visible.ts";

type Columns = Readonly<Record<string, unknown>>;

/** Columns that follow from others, or that the record shows already. */
const HIDDEN = [
  "version",
  "created_at",
  "created_by",
  "last_used_at",
  "rule_id",
  "override_id",
  "caller_id",
  "token_id",
];

/**
 * The columns that differ, or all with a value if there is nothing before or after. Anything that is not an object
 * counts as nothing.
 */
export function differenceOf(before: unknown, after: unknown): ColumnChange[] {
  if (isRule(before) && isRule(after)) return changesOf(before, after);
  const [old, now] = [columnsOf(before), columnsOf(after)];
  const names = [...new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])];
  return names
    .filter((name) => !HIDDEN.includes(name) && jsonOf(old?.[name]) !== jsonOf(now?.[name]))
    .map((name) => ({
      title: columnTitle(name),
      old: old && columnText(name, old[name]),
      new: now && columnText(name, now[name]),
    }));
}

function columnsOf(json: unknown): Columns | undefined {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Columns) : undefined;
}

/** JSON in which the order of members does not matter; null and undefined are equal. */
function jsonOf(value: unknown): string {
  const columns = columnsOf(value);
  if (columns === undefined) return JSON.stringify(value ?? null);
  return JSON.stringify(Object.entries(columns).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** `burst_capacity` is `Burst capacity`, and `reset_after_ms` is `Reset after`. */
function columnTitle(name: string): string {
  const words = visible(name.replace(/_(at|ms)$/, "").replaceAll("_", " "));
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The value of a column with the unit that its name implies. */
function columnText(name: string, value: unknown): string {
  if (typeof value === "string" && name.endsWith("_at")) return `${visible(formatTime(value))} UTC`;
  if (typeof value !== "number" || !Number.isFinite(value)) return textOf(value);
  if (name === "period" || name === "max_wait") return timeWords(timeOf(value));
  return name.endsWith("_ms") ? formatWait(value) : formatCount(value);
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return visibleLines(value);
  if (Array.isArray(value)) return value.map(textOf).join(", ") || "none";
  const columns = columnsOf(value);
  if (columns === undefined) return String(value);
  return (
    Object.entries(columns)
      .map(([name, text]) => `${visible(name)} = ${textOf(text)}`)
      .join("\n") || "none"
  );
}

const TEXTS = ["key_pattern", "mode", "algorithm", "refill", "scope", "on_error", "path"];
const NUMBERS = ["tokens", "period", "burst_capacity"];
const ALGORITHMS = ["token_bucket", "fixed_window", "sliding_window", "sliding_counter", "leaky_bucket"];

/** Returns whether this is a whole rule, which the schema does not promise. */
export function isRule(json: unknown): json is Rule {
  const rule = columnsOf(json);
  return (
    rule !== undefined &&
    TEXTS.every((name) => typeof rule[name] === "string") &&
    NUMBERS.every((name) => Number.isFinite(rule[name])) &&
    ALGORITHMS.includes(rule["algorithm"] as string) &&
    (rule["plan"] === null || typeof rule["plan"] === "string") &&
    (rule["max_wait"] === null || Number.isFinite(rule["max_wait"])) &&
    Object.values(columnsOf(rule["conditions"]) ?? { none: 0 }).every((text) => typeof text === "string") &&
    Array.isArray(rule["replaces"]) &&
    rule["replaces"].every((name) => typeof name === "string")
  );
}
