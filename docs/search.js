// A search by a line of a log. The theme takes each word for the begin of one, also those that every page has: "to"
// finds "token" and "for" finds "former". So what says nothing is left out, such as numbers, unless nothing else is there.
// The number of a code (an exit code of 143, HTTP 403) says much, and of a Java class the part after its packages.
const SAY_NOTHING = new Set(
  "after all already and any are because been but can can't cannot could does doesn't error exception failed failure find"
    .concat(" for from had has have into its not now should than that the their them then there these they this those")
    .concat(" was were what when where which while who will with would you your")
    .split(" "),
);
const QUERY = 2;
const post = Worker.prototype.postMessage;

const CODE = /^(exit)?(code|status|http):?$/i;

function telling(line) {
  const words = line.split(/[\s,;()[\]"'`$]+|\.(?=[A-Z])/).filter((word) => word.length > 2);
  const says = (word, at) =>
    /^[\d.:+-]+$/.test(word) ? /^\d{3}$/.test(word) && CODE.test(words[at - 1] ?? "") : !SAY_NOTHING.has(word.toLowerCase());
  const left = words.filter(says);
  return left.length ? left.join(" ") : line;
}

Worker.prototype.postMessage = function (message, ...rest) {
  const asked = message?.type === QUERY && typeof message.data === "string";
  return post.call(this, asked ? { ...message, data: telling(message.data) } : message, ...rest);
};
