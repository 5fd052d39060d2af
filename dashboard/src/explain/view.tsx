/** Explain: which rules have something to say to a request, and why the others do not. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadRules } from "../api/rules.ts";
import { hrefOf, keepInAddress, parseRoute, useRoute } from "../route.ts";
import { useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { Answer } from "./answer.tsx";
import { useExplanation } from "./ask.ts";
import "./explain.css";
import { RequestForm } from "./form.tsx";
import { hintsOf } from "./hints.ts";
import { bodyOf, errorsOf, paramsOf, type Typed, typedOf } from "./request.ts";
import { Sender } from "./send.tsx";

/** How long typing may pause before the address says what was typed. Browsers refuse too many changes of it. */
const ADDRESS_MS = 300;

export function ExplainView(): JSX.Element {
  const [typed, setTyped] = useTyped();
  const rules = useLoad(loadRules, []);
  const hints = useMemo(() => hintsOf(rules.value ?? []), [rules.value]);
  const sendable = useMemo(() => bodyOf(typed), [typed]);
  const body = "body" in sendable ? sendable.body : undefined;
  const isBlank = body !== undefined && Object.keys(body).length === 0;
  const { explanation, at, problem, askNow } = useExplanation(body);
  const refused = problem?.status === 400 ? errorsOf(problem) : {};
  const errors = "errors" in sendable ? sendable.errors : refused;
  const isWrong = Object.keys(errors).length > 0;
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Explain</h1>
          <p>
            Describe a request: see which rules apply, what is left in each bucket, and why the others do not apply.
          </p>
        </div>
      </div>
      <div class="explain">
        <RequestForm typed={typed} onTyped={setTyped} errors={errors} hints={hints} />
        <div class="explain-answer">
          {isWrong && <Notice kind="warning">Something in the request is wrong: see what is marked.</Notice>}
          {!isWrong && problem !== undefined && <Notice kind="error">{problem.detail}</Notice>}
          {!isWrong && explanation !== undefined && <Answer explanation={explanation} at={at} isBlank={isBlank} />}
          {!isWrong && explanation === undefined && problem === undefined && <p class="muted">Asking…</p>}
        </div>
        <Sender body={isWrong ? undefined : body} onSent={askNow} />
      </div>
    </>
  );
}

/** What is typed, and what the address says: each follows the other. */
function useTyped(): [Typed, (typed: Typed) => void] {
  const { view, params } = useRoute();
  const inAddress = params.toString();
  const [typed, setTyped] = useState(() => typedOf(params));
  const written = useRef(inAddress);
  useEffect(() => {
    if (view !== "explain" || inAddress === written.current) return;
    written.current = inAddress;
    setTyped(typedOf(new URLSearchParams(inAddress)));
  }, [view, inAddress]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const href = hrefOf("explain", paramsOf(typed));
      const text = parseRoute(href).params.toString();
      if (text === written.current) return;
      written.current = text;
      keepInAddress(href);
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}
