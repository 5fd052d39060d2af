/** Edit conflict: shows both changes by column and lets the user select. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { ChangeList, Rule } from "../../api/types.ts";
import { formatTime } from "../../format.ts";
import { useLoad } from "../../ui/load.ts";
import { visible } from "../../ui/visible.ts";
import { type Column, showColumn, titleOf } from "../columns.ts";
import { allOf, differencesOf, mergedOf, type Side, type Sides, suggestedSides, type Versions } from "../conflict.ts";
import "./conflict.css";

interface ConflictProps {
  readonly versions: Versions;
  readonly isBusy: boolean;
  /** Saves the merged rule. */
  readonly onSave: (rule: Rule) => void;
  /** Continues with their version. */
  readonly onTakeTheirs: () => void;
  /** Returns to the form. */
  readonly onGoOn: () => void;
}

const BY = { mine: "you changed it", theirs: "they changed it", both: "both changed it" } as const;

export function Conflict({ versions, isBusy, onSave, onTakeTheirs, onGoOn }: ConflictProps): JSX.Element {
  const differences = differencesOf(versions);
  const [sides, setSides] = useState<Sides>(() => suggestedSides(differences));
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const { theirs } = versions;
  return (
    <section class="conflict" aria-label="Conflict">
      <h3 ref={heading} tabIndex={-1}>
        This rule was changed meanwhile
      </h3>
      <p class="muted">
        You opened version {versions.base.version}; version {theirs.version} was saved since
        <SavedBy rule={theirs} />. Nothing is overwritten until you choose.
      </p>
      {differences.length === 0 ? (
        <p>The saved version is equal to yours.</p>
      ) : (
        <Choices versions={versions} sides={sides} onChange={setSides} />
      )}
      <div class="row">
        <button
          type="button"
          class="button primary"
          disabled={isBusy}
          onClick={() => onSave(mergedOf(versions, sides))}
        >
          Save selection
        </button>
        <button
          type="button"
          class="button"
          disabled={isBusy}
          onClick={() => onSave(mergedOf(versions, allOf("mine", differences)))}
        >
          Keep all mine
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={onTakeTheirs}>
          Take all theirs
        </button>
        <button type="button" class="button quiet" disabled={isBusy} onClick={onGoOn}>
          Back to the editor
        </button>
      </div>
    </section>
  );
}

interface ChoicesProps {
  readonly versions: Versions;
  readonly sides: Sides;
  readonly onChange: (sides: Sides) => void;
}

function Choices({ versions, sides, onChange }: ChoicesProps): JSX.Element {
  return (
    <div class="table-wrap">
      <table class="table conflict-table">
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Before</th>
            <th scope="col">Yours</th>
            <th scope="col">Theirs</th>
          </tr>
        </thead>
        <tbody>
          {differencesOf(versions).map(({ column, by }) => (
            <tr key={column}>
              <th scope="row">
                {titleOf(column)}
                <div class="small muted">{BY[by]}</div>
              </th>
              <td class="key" data-title="Before">
                {showColumn(column, versions.base)}
              </td>
              {(["mine", "theirs"] as const).map((side) => (
                <td key={side} data-title={side === "mine" ? "Yours" : "Theirs"}>
                  <Pick
                    column={column}
                    side={side}
                    value={showColumn(column, versions[side])}
                    isPicked={sides[column] === side}
                    onPick={() => onChange({ ...sides, [column]: side })}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Author and time of the change, once loaded. */
function SavedBy({ rule }: { readonly rule: Rule }): JSX.Element | null {
  const { value } = useLoad(
    (signal) => call<ChangeList>("GET", `/v1/rules/${rule.rule_id}/changes`, { query: { limit: 1 }, signal }),
    [rule.rule_id],
  );
  const change = value?.changes[0];
  if (change === undefined) return null;
  return (
    <>
      {" "}
      (by <bdi class="key">{visible(change.changed_by)}</bdi>, {formatTime(change.changed_at)} UTC)
    </>
  );
}

interface PickProps {
  readonly column: Column;
  readonly side: Side;
  readonly value: string;
  readonly isPicked: boolean;
  readonly onPick: () => void;
}

function Pick({ column, side, value, isPicked, onPick }: PickProps): JSX.Element {
  return (
    <label class="pick">
      <input
        type="radio"
        name={`conflict-${column}`}
        checked={isPicked}
        onChange={onPick}
        aria-label={`${titleOf(column)}: ${side === "mine" ? "yours" : "theirs"}, ${value}`}
      />
      <span class="key">{value}</span>
    </label>
  );
}
