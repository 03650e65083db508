// A search by a line of a log. The theme takes each word for the begin of one, also those that every page has: "to"
// finds "token" and "for" finds "former". So what says nothing is left out, such as numbers, unless nothing else is there.
const SAY_NOTHING = new Set(
  "after all already and any are because been but can can't cannot could does doesn't error exception failed failure find"
    .concat(" for from had has have into its not now should than that the their them then there these they this those")
    .concat(" was were what when where which while who will with would you your")
    .split(" "),
);
const QUERY = 2;
const post = Worker.prototype.postMessage;

function telling(line) {
  const words = line.split(/[\s,;()[\]"'`]+/).filter((word) => word.length > 2);
  const left = words.filter((word) => !SAY_NOTHING.has(word.toLowerCase()) && !/^[\d.:+-]+$/.test(word));
  return left.length ? left.join(" ") : line;
}

Worker.prototype.postMessage = function (message, ...rest) {
  const asked = message?.type === QUERY && typeof message.data === "string";
  return post.call(this, asked ? { ...message, data: telling(message.data) } : message, ...rest);
};
