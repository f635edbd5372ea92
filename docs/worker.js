// Browsers start no worker from file://. When the site is read from disk, the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const scope = this.frame.contentWindow;
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.ready = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.head.append(script);
      });
    }

    postMessage(data) {
      const scope = this.frame.contentWindow;
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
