// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/installplan/internal/versions"
	"github.com/olmcore/olm/olmcore"
)

// AlongsidePrefix starts the annotations in which a definition records the
// ClusterServiceVersions that brought it, each as namespace/name. OLM writes them.
const AlongsidePrefix = "operatorframework.io/installed-alongside-"

// maxRecorded is how many versions of one namespace a definition records. Its
// annotations have an end, and other namespaces need room, too.
const maxRecorded = 20

// Recorded splits annotations into the entries that record ClusterServiceVersions and
// the others.
func Recorded(annotations map[string]string) (entries, others map[string]string) {
	entries, others = map[string]string{}, map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, AlongsidePrefix) {
			entries[key] = value
		} else {
			others[key] = value
		}
	}
	return entries, others
}

// MayBeRecorded reports whether a name may be one that a definition records.
func MayBeRecorded(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// unrecordable says why versions cannot be recorded on a definition: others look them
// up by what is recorded. Empty when they can.
func unrecordable(crd string, names []string) string {
	for _, name := range names {
		if !MayBeRecorded(name) {
			return fmt.Sprintf("CustomResourceDefinition %s: %q is no name of a ClusterServiceVersion", crd, name)
		}
	}
	if len(names) > maxRecorded {
		return fmt.Sprintf("CustomResourceDefinition %s is made for %d versions; there is room for %d", crd, len(names), maxRecorded)
	}
	return ""
}

// record returns the entries of those that exist or are about to, and those of the
// plan's own versions. Two names may have one hash under which OLM records them, and
// such names are easily found: the first entry stays, the next gets a key of its own.
func record(entries map[string]string, known versions.Known, own []string) map[string]string {
	kept := map[string]string{}
	add := func(value string) {
		h := fnv.New64a()
		h.Write([]byte(value))
		key := fmt.Sprintf("%s%x", AlongsidePrefix, h.Sum64())
		if have, taken := kept[key]; taken && have != value {
			key += "-" + olmcore.NameSuffix(20, value)
		}
		kept[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		namespace, name, _ := strings.Cut(entries[key], "/")
		if csv := known.At(namespace, name); csv != nil && !csv.IsCopied() || known.IsAnnounced(namespace, name) {
			add(entries[key])
		}
	}
	for _, name := range own {
		add(known.Namespace + "/" + name)
	}
	return kept
}

// recordsAll reports whether a definition records the plan's versions, under whatever
// keys.
func recordsAll(crd *apiextensionsv1.CustomResourceDefinition, known versions.Known, own []string) bool {
	entries, _ := Recorded(crd.Annotations)
	values := slices.Collect(maps.Values(entries))
	return !slices.ContainsFunc(own, func(name string) bool { return !slices.Contains(values, known.Namespace+"/"+name) })
}

// isManaged: OLM records who brought a definition on each that it writes, and labels it
// since 0.26.
func isManaged(crd *apiextensionsv1.CustomResourceDefinition) bool {
	entries, _ := Recorded(crd.Annotations)
	return len(entries) > 0 || versions.IsManaged(crd)
}
