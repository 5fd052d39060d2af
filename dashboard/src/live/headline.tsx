/** Headline figures. */

import type { ComponentChildren, JSX } from "preact";
import type { LiveTick } from "../api/types.ts";
import { degradedNow, formatMicrosBound, formatRate, formatShare, latencyOf, NOW_S, requestsNow } from "./figures.ts";
import type { PastTick } from "./ticks.ts";
import { type Warning, warningsOf } from "./warnings.ts";

interface HeadlineProps {
  readonly history: readonly PastTick[];
  readonly last: LiveTick;
  /** True if the connection is lost: then the state of the service is unknown. */
  readonly isLost: boolean;
}

export function Headline({ history, last, isLost }: HeadlineProps): JSX.Element {
  const rates = requestsNow(history);
  const latency = latencyOf(history);
  return (
    <dl class="headline" aria-label={`Averages of the last ${NOW_S} seconds`}>
      <Figure name="Allowed" kind="allowed" value={formatRate(rates.allowed)} unit="/s">
        requests, mean of {NOW_S} s
      </Figure>
      <Figure name="Denied" kind={rates.denied > 0 ? "denied" : ""} value={formatRate(rates.denied)} unit="/s">
        requests, mean of {NOW_S} s
      </Figure>
      <Figure
        name="Share denied"
        kind={(rates.shareDenied ?? 0) > 0 ? "denied" : ""}
        value={formatShare(rates.shareDenied)}
      >
        of requests in {NOW_S} s
      </Figure>
      <Figure name="Latency, median" value={formatMicrosBound(latency?.p50_us ?? null)}>
        {latency === undefined ? (
          "no requests"
        ) : (
          <>
            99th percentile <b>{formatMicrosBound(latency.p99_us)}</b>
          </>
        )}
      </Figure>
      <StateFigure warnings={warningsOf(last, degradedNow(history))} store={last.store.kind} isLost={isLost} />
    </dl>
  );
}

interface StateFigureProps {
  readonly warnings: readonly Warning[];
  readonly store: string;
  readonly isLost: boolean;
}

function StateFigure({ warnings, store, isLost }: StateFigureProps): JSX.Element {
  if (isLost) {
    return (
      <Figure name="State" value="Unknown" isWord>
        figures are outdated
      </Figure>
    );
  }
  const [worst] = warnings;
  if (worst !== undefined) {
    return (
      <Figure name="State" kind="warning" value={worst.short} isWord>
        details are below
      </Figure>
    );
  }
  return (
    <Figure name="State" kind="allowed" value="OK" isWord>
      store ({store}), database, rules, audit
    </Figure>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly kind?: string;
  readonly isWord?: boolean;
  readonly children: ComponentChildren;
}

function Figure({ name, value, unit, kind = "", isWord = false, children }: FigureProps): JSX.Element {
  return (
    <div class={`live-figure ${kind}`}>
      <dt>{name}</dt>
      <dd>
        <span class={isWord ? "live-figure-word" : "live-figure-value"}>
          {value}
          {unit !== undefined && <small>{unit}</small>}
        </span>
        <span class="live-figure-about">{children}</span>
      </dd>
    </div>
  );
}
