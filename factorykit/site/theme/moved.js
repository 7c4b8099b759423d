/* Leads from an address that was left to the one that took its place, to the same part and state of it. */
location.replace(document.currentScript.dataset.to + location.search + location.hash);
