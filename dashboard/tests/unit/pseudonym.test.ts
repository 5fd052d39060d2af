import { expect, test } from "@playwright/test";
import { isPseudonym } from "../../src/ui/pseudonym.ts";

const HASH = "A1_-".repeat(5).concat("xy");

test("a hash or a truncated text is a pseudonym of any attribute", () => {
  for (const attribute of ["user_id", "ip", "tenant"]) {
    expect(isPseudonym(`h:${HASH}`, attribute)).toBe(true);
    expect(isPseudonym(`${"x".repeat(233)}~${HASH}`, attribute)).toBe(true);
  }
  // Truncated by bytes, between characters.
  expect(isPseudonym(`${"\u{1f600}".repeat(58)}~${HASH}`, "user_id")).toBe(true);
});

test("a network is a pseudonym of an address only", () => {
  for (const network of ["203.0.113.0/24", "2001:db8:1::/48", "2001:db8::/48", "::/48"]) {
    expect(isPseudonym(network, "ip")).toBe(true);
    expect(isPseudonym(network, "tenant")).toBe(false);
  }
});

test("a subject is not a pseudonym", () => {
  const subjects = ["", "42", "h:42", "203.0.113.9", "2001:db8::1", "x".repeat(256), `short~${HASH}`, `h:${HASH}x`];
  for (const subject of subjects) {
    expect(isPseudonym(subject, "user_id")).toBe(false);
    expect(isPseudonym(subject, "ip")).toBe(false);
  }
});

test("the name of a shared bucket is not a pseudonym", () => {
  expect(isPseudonym(`h:${HASH}`, undefined)).toBe(false);
});
