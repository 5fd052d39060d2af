/** Form that grants extra tokens. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, type Problem } from "../../api/client.ts";
import type { Bucket } from "../../api/types.ts";
import { formatCount } from "../../format.ts";
import { Field } from "../../ui/field.tsx";
import { asProblem } from "../../ui/load.ts";
import { Notice } from "../../ui/notice.tsx";
import { pathOrProblem } from "./buckets.ts";
import { useFocus } from "./focus.ts";
import { type Outcome, problemText } from "./outcome.tsx";
import { numberOrText } from "./words.ts";

interface GrantFormProps {
  readonly ruleId: number;
  readonly subject: string;
  readonly further: Readonly<Record<string, string>>;
  /** Reason for the history. */
  readonly why: string;
  readonly onClose: () => void;
  readonly onDone: (outcome: Outcome) => void;
}

export function GrantForm({ ruleId, subject, further, why, onClose, onDone }: GrantFormProps): JSX.Element {
  const [text, setText] = useState("10");
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const first = useFocus<HTMLInputElement>();
  const grant = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const path = `${pathOrProblem(ruleId, subject)}/grant`;
      const body = { tokens: numberOrText(text) };
      const { remaining, limit } = await call<Bucket>("POST", path, { query: further, body, reason: why });
      const left = `${formatCount(remaining)} of ${formatCount(limit)} left`;
      onDone({ kind: "ok", text: `Granted ${text.trim()} tokens: ${left}.` });
    } catch (thrown) {
      setProblem(asProblem(thrown));
      setBusy(false);
    }
  };
  const isOfField = problem?.field === "tokens";
  return (
    <form class="form" onSubmit={grant}>
      <Field
        label="Tokens"
        hint="Added to the bucket at once, up to its limit."
        error={isOfField ? problem?.detail : undefined}
      >
        {(input) => (
          <input
            {...input}
            ref={first}
            class="input"
            inputMode="numeric"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
      {problem !== undefined && !isOfField && <Notice kind="error">{problemText(problem)}</Notice>}
      <div class="row">
        <button type="submit" class="button primary" disabled={isBusy}>
          Grant
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
