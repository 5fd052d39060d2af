/** Edit conflicts: differences between two concurrent changes of a rule, by column, and their merge. */

import type { Rule } from "../api/types.ts";
import { COLUMN_NAMES, type Column, isSameIn, withColumn } from "./columns.ts";

/** Three versions of the same rule. */
export interface Versions {
  /** When the editor was opened. */
  readonly base: Rule;
  readonly mine: Rule;
  readonly theirs: Rule;
}

export type Side = "mine" | "theirs";
export type Sides = Partial<Record<Column, Side>>;

/** The side that changed a column; `both` if both changed it to different values. */
export type ChangedBy = Side | "both";

export interface Difference {
  readonly column: Column;
  readonly by: ChangedBy;
}

/** The columns in which mine and theirs differ. Equal changes are not differences. */
export function differencesOf({ base, mine, theirs }: Versions): Difference[] {
  return COLUMN_NAMES.filter((column) => !isSameIn(column, mine, theirs)).map((column) => {
    if (isSameIn(column, base, mine)) return { column, by: "theirs" };
    return { column, by: isSameIn(column, base, theirs) ? "mine" : "both" };
  });
}

/** The default selection: the changes of both sides, and mine where both changed a column. */
export function suggestedSides(differences: readonly Difference[]): Sides {
  return Object.fromEntries(differences.map(({ column, by }) => [column, by === "theirs" ? "theirs" : "mine"]));
}

/** All columns from one side. */
export function allOf(side: Side, differences: readonly Difference[]): Sides {
  return Object.fromEntries(differences.map(({ column }) => [column, side]));
}

/** Their rule with my values in the columns where my side is selected. */
export function mergedOf({ mine, theirs }: Versions, sides: Sides): Rule {
  return COLUMN_NAMES.reduce(
    (rule, column) => (sides[column] === "mine" ? withColumn(rule, column, mine) : rule),
    theirs,
  );
}
