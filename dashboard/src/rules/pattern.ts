/** Key patterns as people choose and say them: by whom a rule counts. */

import type { ScopeName } from "../api/types.ts";
import { placeholders } from "../ui/pattern.ts";

/** What most rules count by. Anything else is a pattern of one's own. */
export const GROUPS = ["user", "ip", "endpoint", "everyone", "path", "own"] as const;
export type Group = (typeof GROUPS)[number];

/** The pattern that a choice writes. */
const PATTERNS: Record<Exclude<Group, "own">, string> = {
  user: "user:{user_id}",
  ip: "ip:{ip}",
  endpoint: "endpoint:{endpoint}",
  everyone: "global",
  path: "endpoint:/",
};

/** Names of attributes that every request may have, and what one of them is called. */
const NOUNS: Record<string, string> = {
  user_id: "user",
  ip: "address",
  endpoint: "endpoint",
  method: "method",
  plan: "plan",
};

const ENDPOINT = "endpoint:";

/** The endpoint that a pattern such as `endpoint:/api/search` is about, if it is. */
export function endpointOf(pattern: string): string | undefined {
  const isAbout = pattern.startsWith(ENDPOINT) && placeholders(pattern).length === 0;
  return isAbout ? pattern.slice(ENDPOINT.length) : undefined;
}

/**
 * By whom a pattern counts. The text around a placeholder is free, and so is that of a shared bucket: `login:{ip}` is
 * by address, too.
 */
export function groupOf(pattern: string): Group {
  const names = placeholders(pattern);
  if (names.length === 0 && /[{}]/.test(pattern)) return "own";
  if (names.length === 0) return endpointOf(pattern) === undefined ? "everyone" : "path";
  if (names.length > 1) return "own";
  return (["user", "ip", "endpoint"] as const).find((group) => placeholders(PATTERNS[group])[0] === names[0]) ?? "own";
}

/** The pattern for a choice: the one before if it says so already, or if it is to be one's own. */
export function patternFor(group: Group, before: string): string {
  return group === "own" || groupOf(before) === group ? before : PATTERNS[group];
}

/** The scope that the service gives a rule with this pattern if none is asked for. */
export function suggestedScope(pattern: string): ScopeName {
  const first = placeholders(pattern)[0];
  if (first === "user_id") return "user";
  if (first === "ip") return "ip";
  if (first === "endpoint") return "endpoint";
  if (first !== undefined) return "custom";
  if (endpointOf(pattern) !== undefined) return "endpoint";
  return pattern === "global" ? "global" : "custom";
}

/** What an attribute's value is called: `user_id` is a user, `tenant` is a tenant. */
export function nounOf(attribute: string): string {
  return Object.hasOwn(NOUNS, attribute) ? NOUNS[attribute]! : attribute;
}

/** By whom it counts: `each user`, `each endpoint and user`, `everyone together`. */
export function groupWords(pattern: string): string {
  const nouns = placeholders(pattern).map(nounOf);
  if (nouns.length === 0) return "everyone together";
  return `each ${joinWords(nouns)}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function joinWords(words: readonly string[], last = "and"): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
