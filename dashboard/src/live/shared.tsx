/** Levels of shared buckets. */

import type { JSX } from "preact";
import type { SharedTier } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { useRoute } from "../route.ts";
import { Key, PlanBadge } from "../ui/key.tsx";
import { byOf, liveHref } from "./address.ts";
import { formatRate, formatShare, NOW_S } from "./figures.ts";
import { Level } from "./level.tsx";
import type { PastTick } from "./ticks.ts";
import { type Use, utilisationOf } from "./utilisation.ts";

interface SharedProps {
  readonly shared: readonly SharedTier[];
  readonly history: readonly PastTick[];
}

export function Shared({ shared, history }: SharedProps): JSX.Element {
  return (
    <section class="panel" aria-labelledby="shared-heading">
      <div>
        <h2 id="shared-heading">Shared tiers</h2>
        <p class="muted small">
          Rules without placeholders have one bucket for all requests. The bar shows the larger of two shares: tokens
          spent, and refill rate used in the last {NOW_S} seconds at one token per request.
        </p>
      </div>
      {shared.length === 0 && <p class="muted">No active rule has a shared bucket.</p>}
      <ul class="shared">
        {shared.map((tier) => (
          <Tier key={tier.rule_id} tier={tier} use={utilisationOf(tier, history)} />
        ))}
      </ul>
    </section>
  );
}

function Tier({ tier, use }: { readonly tier: SharedTier; readonly use: Use }): JSX.Element {
  const { params } = useRoute();
  const { rule_id, key_pattern, plan, mode, limit, remaining } = tier;
  const { share, of, rate } = use;
  const href = liveHref(byOf(params), { ruleId: rule_id, subject: key_pattern, known: {} });
  return (
    <li>
      <div class="shared-name">
        <span>
          <Key text={key_pattern} href={href} /> {plan !== null && <PlanBadge plan={plan} />}{" "}
          {mode === "shadow" && <span class="badge shadow">shadow</span>}
        </span>
        <span class="shared-share">
          <b>{share === null ? "–" : formatShare(share)}</b>
          {share !== null && <span class="small muted"> of its {of}</span>}
        </span>
      </div>
      <Level share={share} isRate={of === "rate"} />
      <div class="muted small shared-about">
        <span>
          {limit === null || remaining === null
            ? "The store does not answer."
            : `${formatCount(remaining)} of ${formatCount(limit)} tokens left`}
        </span>
        {rate !== undefined && (
          <span>
            {formatRate(rate.granted)} of {formatRate(rate.refill)} requests per second, {formatShare(rate.share)}
          </span>
        )}
      </div>
    </li>
  );
}
