/** Dialog with the editor: of a rule, of a new one, or of a copy. */

import type { JSX } from "preact";
import { call, Problem } from "../../api/client.ts";
import type { Rule } from "../../api/types.ts";
import { useLoad } from "../../ui/load.ts";
import { Notice } from "../../ui/notice.tsx";
import { isChangeable, isRuleId } from "../list.ts";
import { NoSuchRule, Sheet } from "../sheet.tsx";
import { Editor } from "./editor.tsx";
import { ReadOnly } from "./read-only.tsx";

interface EditorSheetProps {
  /** The number of a rule, `new`, or null for none. */
  readonly ruleId: string | null;
  /** The number of the rule that a new one copies. */
  readonly from: string | null;
  readonly plans: readonly string[];
  readonly names: readonly string[];
  /** Source of the rules; undefined until loaded. */
  readonly source: string | undefined;
  readonly href: (params: Record<string, string>) => string;
  readonly onSaved: (rule: Rule, isNew: boolean) => void;
  readonly onClose: () => void;
}

export function EditorSheet(props: EditorSheetProps): JSX.Element | null {
  const { ruleId, source } = props;
  if (ruleId === null || source === undefined) return null;
  const isNew = ruleId === "new";
  if (!isNew && !isRuleId(ruleId)) return <NoSuchRule onClose={props.onClose} />;
  const from = isRuleId(props.from) ? props.from : null;
  const title = isNew ? "New rule" : `Rule ${ruleId}`;
  return (
    <Sheet key={`${ruleId}/${from}`} title={title} onClose={props.onClose}>
      <Opened {...props} id={isNew ? from : ruleId} isNew={isNew} />
    </Sheet>
  );
}

function Opened(props: EditorSheetProps & { readonly id: string | null; readonly isNew: boolean }): JSX.Element {
  const { id, isNew, href } = props;
  const { value, problem, isLoading, reload } = useLoad((signal) => loadRule(id, isNew, signal), [id]);
  if (problem !== undefined && value === undefined) {
    return (
      <Notice kind="error">
        <div class="row">
          <span>{problem.detail}</span>
          {problem.status === 404 ? (
            <a href={href({ history: id ?? "" })}>History of the rule</a>
          ) : (
            <button type="button" class="button" onClick={reload}>
              Try again
            </button>
          )}
        </div>
      </Notice>
    );
  }
  if (value === undefined && isLoading) return <p class="muted">Loading…</p>;
  const rule = value ?? undefined;
  if (!isChangeable(props.source ?? ""))
    return <ReadOnly rule={isNew ? undefined : rule} source={props.source ?? ""} />;
  return <Editor {...props} rule={isNew ? undefined : rule} like={isNew ? rule : undefined} />;
}

/** Null for a new rule, also if the rule to copy was deleted. */
async function loadRule(id: string | null, isNew: boolean, signal: AbortSignal): Promise<Rule | null> {
  if (id === null) return null;
  try {
    return await call<Rule>("GET", `/v1/rules/${encodeURIComponent(id)}`, { signal });
  } catch (thrown) {
    if (isNew && thrown instanceof Problem && thrown.status === 404) return null;
    throw thrown;
  }
}
