/** Effect of the rule as text and as a curve. */

import type { JSX } from "preact";
import { formatCount, formatWait } from "../../format.ts";
import { drawingOf } from "../drawing.ts";
import { quotaOfForm, type RuleForm } from "../form.ts";
import { meaningOf } from "../words.ts";

const WIDTH = 240;
const HEIGHT = 56;

export function Meaning({ form }: { readonly form: RuleForm }): JSX.Element {
  const meaning = meaningOf(form);
  return (
    <section class="meaning" aria-label="Effect">
      <p>{meaning === "" ? <span class="muted">The quota is incomplete.</span> : meaning}</p>
      <Curve form={form} />
    </section>
  );
}

function Curve({ form }: { readonly form: RuleForm }): JSX.Element | null {
  const quota = form.mode === "unlimited" ? undefined : quotaOfForm(form);
  if (quota === undefined) return null;
  const { points, micros, count } = drawingOf(form, quota);
  const path = points.map(([time, share]) => `${time * WIDTH} ${HEIGHT - share * HEIGHT}`).join(" L ");
  const span = formatWait(Number(micros / 1000n) || 1);
  return (
    <figure class="curve">
      <svg viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="curve-area" d={`M ${path} L ${WIDTH} ${HEIGHT} Z`} />
        <path class="curve-line" d={`M ${path}`} />
      </svg>
      <figcaption class="muted small">
        At most {formatCount(Number(count))} in the first {span}
      </figcaption>
    </figure>
  );
}
