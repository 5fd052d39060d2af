/** Key patterns: text with `{attribute}` placeholders; requests with the same values share a bucket. */

const PLACEHOLDER = /\{([^{}]*)\}/g;

/** The names of the placeholders in order, without duplicates. */
export function placeholders(pattern: string): string[] {
  return [...new Set([...pattern.matchAll(PLACEHOLDER)].map(([, name]) => name!))];
}

/** The subject attribute: `user_id` if the pattern has it, else `ip`, else its first placeholder, else undefined. */
export function subjectAttribute(pattern: string): string | undefined {
  const names = placeholders(pattern);
  return ["user_id", "ip"].find((name) => names.includes(name)) ?? names[0];
}

/** The placeholders other than the subject. */
export function otherPlaceholders(pattern: string): string[] {
  const subject = subjectAttribute(pattern);
  return placeholders(pattern).filter((name) => name !== subject);
}
