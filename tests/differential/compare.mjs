// Reads pairs of lines, a document and our canonical form of it, and compares with npm's canonicalize.
//
// Usage: canonical_documents COUNT | node compare.mjs COUNT

import canonicalize from "canonicalize";

const expectedCount = Number(process.argv[2]);
let compared = 0;
let disagreed = 0;
let document = null;

// A canonical form can hold U+2028 and U+2029, which readline takes for line breaks; so split by hand.
let rest = Buffer.alloc(0);
for await (const chunk of process.stdin) {
  rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
  let start = 0;
  for (let end; (end = rest.indexOf(10, start)) !== -1; start = end + 1) {
    const line = rest.toString("utf8", start, end);
    if (document === null) {
      document = line;
      continue;
    }
    const theirs = canonicalize(JSON.parse(document));
    compared += 1;
    if (theirs !== line) {
      disagreed += 1;
      console.error(`disagree on ${document}\n  ours   ${line}\n  theirs ${theirs}`);
    }
    document = null;
  }
  rest = rest.subarray(start);
}
console.log(`canonical form against canonicalize (JavaScript): ${compared} compared, ${disagreed} disagree`);
process.exitCode = compared === expectedCount && disagreed === 0 ? 0 : 1;
