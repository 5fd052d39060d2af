/** Key patterns: text with `{attribute}` placeholders that says which requests share a bucket, and so whom it is about. */

const PLACEHOLDER = /\{([^{}]*)\}/g;

/** The names of its placeholders, each once, in their order. */
export function placeholders(pattern: string): string[] {
  return [...new Set([...pattern.matchAll(PLACEHOLDER)].map(([, name]) => name!))];
}

/** The attribute that is its subject: `user_id` if it has it, else `ip`, else the first. Undefined if all share one bucket. */
export function subjectAttribute(pattern: string): string | undefined {
  const names = placeholders(pattern);
  return ["user_id", "ip"].find((name) => names.includes(name)) ?? names[0];
}

/** The placeholders that have to be known beside the subject. */
export function otherPlaceholders(pattern: string): string[] {
  const subject = subjectAttribute(pattern);
  return placeholders(pattern).filter((name) => name !== subject);
}
