// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"strings"
)

// firstInstalledBy returns the namespace that annotation olmcore.AnnotationFirstInstalledBy of a definition should name, "" for none.
// named is the namespace that it names now. live are the records of versions that exist, or are about to, before a plan adds its own.
// all are these and the plan's own. Each record is namespace/name.
//
// A definition that only one namespace installed needs no annotation. A namespace that the annotation names keeps its place while it
// has a live record, as an administrator may have chosen it. Otherwise the first namespace is known only if all live records are of
// one namespace.
func firstInstalledBy(named string, live, all []string) string {
	first := namespacesOf(live)
	switch {
	case len(namespacesOf(all)) < 2:
		return ""
	case slices.Contains(first, named):
		return named
	case len(first) == 1:
		return first[0]
	}
	return ""
}

// namespacesOf returns the namespaces of some records, each once, sorted.
func namespacesOf(records []string) []string {
	var namespaces []string
	for _, record := range records {
		namespace, _, _ := strings.Cut(record, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
