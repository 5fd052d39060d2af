import { expect, test } from "@playwright/test";
import { fieldMessage } from "../../src/ui/field-message.ts";

test("messages of the parser are shortened", () => {
  const whole = "a whole number that is not negative";
  expect(fieldMessage(`invalid value: integer \`-5\`, expected ${whole}`)).toBe(`must be ${whole}`);
  expect(fieldMessage(`invalid type: string "-3", expected ${whole}`)).toBe(`must be ${whole}`);
  expect(fieldMessage(`tokens: invalid type: floating point \`1.5\`, expected ${whole} at line 1 column 9`)).toBe(
    `tokens: must be ${whole}`,
  );
  expect(fieldMessage("unknown variant `x`, expected one of `enforce`, `shadow`")).toBe(
    "must be one of `enforce`, `shadow`",
  );
});

test("typed text cannot imitate the message", () => {
  expect(fieldMessage('invalid type: string "a, expected b", expected a number')).toBe("must be a number");
});

test("other messages stay unchanged", () => {
  for (const text of ["is not an address", "a rate of zero never refills", "at most 32 bytes, expected or not"]) {
    expect(fieldMessage(text)).toBe(text);
  }
});
