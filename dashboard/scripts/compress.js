// Compresses the built page, which the service sends compressed, and fails if it exceeds the size limit.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Size limit of the compressed page, in bytes. */
const PACKED_MAX = 120_000;

const root = "dist/page";
let [plain, packed] = [0, 0];
for (const name of readdirSync(root, { recursive: true }).sort()) {
  const path = join(root, name);
  if (statSync(path).isDirectory()) continue;
  const bytes = readFileSync(path);
  const gzip = gzipSync(bytes, { level: 9 });
  writeFileSync(`${path}.gz`, gzip);
  plain += bytes.length;
  packed += gzip.length;
  console.log(`${name.padEnd(40)} ${String(bytes.length).padStart(8)} bytes ${String(gzip.length).padStart(8)} packed`);
}
console.log(`${"the page".padEnd(40)} ${String(plain).padStart(8)} bytes ${String(packed).padStart(8)} packed`);
if (packed > PACKED_MAX) {
  console.error(
    `the page is larger than ${PACKED_MAX} bytes: reduce it, or raise the limit and say why in docs/page.md`,
  );
  process.exit(1);
}
