/** Explain view: which rules apply to a request, and why the others do not. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadRules } from "../api/rules.ts";
import { hrefOf, parseRoute, replaceAddress, useRoute } from "../route.ts";
import { useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { Answer } from "./answer.tsx";
import { useExplanation } from "./use-explanation.ts";
import "./explain.css";
import { RequestForm } from "./form.tsx";
import { hintsOf } from "./hints.ts";
import { bodyOf, errorsOf, fieldsOf, paramsOf, type RequestFields } from "./request.ts";
import { Sender } from "./send.tsx";

/** Delay before the address is updated: browsers limit how often it may change. */
const ADDRESS_MS = 300;

export function ExplainView(): JSX.Element {
  const [fields, setFields] = useFields();
  const rules = useLoad(loadRules, []);
  const hints = useMemo(() => hintsOf(rules.value ?? []), [rules.value]);
  const sendable = useMemo(() => bodyOf(fields), [fields]);
  const body = "body" in sendable ? sendable.body : undefined;
  const isBlank = body !== undefined && Object.keys(body).length === 0;
  const { explanation, at, problem, refresh } = useExplanation(body);
  const refused = problem?.status === 400 ? errorsOf(problem) : {};
  const errors = "errors" in sendable ? sendable.errors : refused;
  const isWrong = Object.keys(errors).length > 0;
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Explain</h1>
          <p>
            Enter a request to see which rules apply, how many tokens each bucket has left, and why other rules do not
            apply.
          </p>
        </div>
      </div>
      <div class="explain">
        <RequestForm fields={fields} onChange={setFields} errors={errors} hints={hints} />
        <div class="explain-answer">
          {isWrong && <Notice kind="warning">The request is not valid: correct the marked fields.</Notice>}
          {!isWrong && problem !== undefined && <Notice kind="error">{problem.detail}</Notice>}
          {!isWrong && explanation !== undefined && <Answer explanation={explanation} at={at} isBlank={isBlank} />}
          {!isWrong && explanation === undefined && problem === undefined && <p class="muted">Loading…</p>}
        </div>
        <Sender body={isWrong ? undefined : body} onSent={refresh} />
      </div>
    </>
  );
}

/** The form fields, kept in sync with the address. */
function useFields(): [RequestFields, (fields: RequestFields) => void] {
  const { view, params } = useRoute();
  const inAddress = params.toString();
  const [fields, setFields] = useState(() => fieldsOf(params));
  const written = useRef(inAddress);
  useEffect(() => {
    if (view !== "explain" || inAddress === written.current) return;
    written.current = inAddress;
    setFields(fieldsOf(new URLSearchParams(inAddress)));
  }, [view, inAddress]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const href = hrefOf("explain", paramsOf(fields));
      const text = parseRoute(href).params.toString();
      if (text === written.current) return;
      written.current = text;
      replaceAddress(href);
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [fields]);
  return [fields, setFields];
}
