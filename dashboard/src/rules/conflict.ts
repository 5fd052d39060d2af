/** Somebody else has saved first: what each has changed, column by column, and what becomes of it. */

import type { Rule } from "../api/types.ts";
import { COLUMN_NAMES, type Column, isSameIn, withColumn } from "./columns.ts";

/** The same rule three times. */
export interface Versions {
  /** As it was when the editor was opened. */
  readonly base: Rule;
  readonly mine: Rule;
  readonly theirs: Rule;
}

export type Side = "mine" | "theirs";
export type Sides = Partial<Record<Column, Side>>;

/** Who has changed a column; `both` if differently. */
export type ChangedBy = Side | "both";

export interface Difference {
  readonly column: Column;
  readonly by: ChangedBy;
}

/** The columns in which mine and theirs differ. Where both have done the same, there is nothing to choose. */
export function differencesOf({ base, mine, theirs }: Versions): Difference[] {
  return COLUMN_NAMES.filter((column) => !isSameIn(column, mine, theirs)).map((column) => {
    if (isSameIn(column, base, mine)) return { column, by: "theirs" };
    return { column, by: isSameIn(column, base, theirs) ? "mine" : "both" };
  });
}

/** What loses nothing: everybody's own changes, and mine where both have changed the same. */
export function suggestedSides(differences: readonly Difference[]): Sides {
  return Object.fromEntries(differences.map(({ column, by }) => [column, by === "theirs" ? "theirs" : "mine"]));
}

/** All columns from one side. */
export function allOf(side: Side, differences: readonly Difference[]): Sides {
  return Object.fromEntries(differences.map(({ column }) => [column, side]));
}

/** Their rule, with those columns as I have them for which I am chosen. */
export function mergedOf({ mine, theirs }: Versions, sides: Sides): Rule {
  return COLUMN_NAMES.reduce(
    (rule, column) => (sides[column] === "mine" ? withColumn(rule, column, mine) : rule),
    theirs,
  );
}
