// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"strings"
)

// firstInstalledBy returns the namespace that annotation olmcore.AnnotationFirstInstalledBy of a definition should
// name, "" for none. named is the namespace that it names now. live are the records of versions that exist, or are
// about to, before a plan of a namespace adds its own. Each record is namespace/name.
//
// A definition that only one namespace installed needs no annotation. Otherwise the first namespace is known if all
// live records are of one namespace. No plan changes the annotation afterwards: while the first operator is installed
// again, a later one would become first.
func firstInstalledBy(named string, live []string, namespace string) string {
	before := namespacesOf(live)
	if named == "" && len(before) == 1 && before[0] != namespace {
		return before[0]
	}
	return named
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
