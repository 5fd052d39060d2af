/** Key patterns as choices of the editor and as text. */

import type { ScopeName } from "../api/types.ts";
import { placeholders } from "../ui/pattern.ts";

/** Common patterns; `own` is any other. */
export const GROUPS = ["user", "ip", "endpoint", "everyone", "path", "own"] as const;
export type Group = (typeof GROUPS)[number];

/** The pattern of each choice. */
const PATTERNS: Record<Exclude<Group, "own">, string> = {
  user: "user:{user_id}",
  ip: "ip:{ip}",
  endpoint: "endpoint:{endpoint}",
  everyone: "global",
  path: "endpoint:/",
};

/** Nouns for the values of the standard attributes. */
const NOUNS: Record<string, string> = {
  user_id: "user",
  ip: "IP address",
  endpoint: "endpoint",
  method: "method",
  plan: "plan",
};

const ENDPOINT = "endpoint:";

/** The endpoint in a pattern such as `endpoint:/api/search`; undefined for other patterns. */
export function endpointOf(pattern: string): string | undefined {
  const isAbout = pattern.startsWith(ENDPOINT) && placeholders(pattern).length === 0;
  return isAbout ? pattern.slice(ENDPOINT.length) : undefined;
}

/** The choice that a pattern belongs to. The text around a placeholder is free: `login:{ip}` counts by address, too. */
export function groupOf(pattern: string): Group {
  const names = placeholders(pattern);
  if (names.length === 0 && /[{}]/.test(pattern)) return "own";
  if (names.length === 0) return endpointOf(pattern) === undefined ? "everyone" : "path";
  if (names.length > 1) return "own";
  return (["user", "ip", "endpoint"] as const).find((group) => placeholders(PATTERNS[group])[0] === names[0]) ?? "own";
}

/** The pattern of a choice; unchanged if it belongs to that choice already, or the choice is `own`. */
export function patternFor(group: Group, before: string): string {
  return group === "own" || groupOf(before) === group ? before : PATTERNS[group];
}

/** The default scope of a rule with this pattern. */
export function suggestedScope(pattern: string): ScopeName {
  const first = placeholders(pattern)[0];
  if (first === "user_id") return "user";
  if (first === "ip") return "ip";
  if (first === "endpoint") return "endpoint";
  if (first !== undefined) return "custom";
  if (endpointOf(pattern) !== undefined) return "endpoint";
  return pattern === "global" ? "global" : "custom";
}

/** The noun for the values of an attribute: `user_id` is a user, `tenant` is a tenant. */
export function nounOf(attribute: string): string {
  return Object.hasOwn(NOUNS, attribute) ? NOUNS[attribute]! : attribute;
}

/** The grouping as text: `each user`, `each endpoint and user`, `all clients together`. */
export function groupWords(pattern: string): string {
  const nouns = placeholders(pattern).map(nounOf);
  if (nouns.length === 0) return "all clients together";
  return `each ${joinWords(nouns)}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function joinWords(words: readonly string[], last = "and"): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
