// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// digestLength is the length of the digest of an unpacked bundle.
const digestLength = 64

// fromImages returns the names of the operators whose objects come from their unpacked bundle image. These are
// operators that the catalog describes by an image alone. If the steps of the other operators do not fit into one
// InstallPlan, operators with an image are added, those that save the most first. No operator is added if the plan
// would be too large even then.
//
// Differs: OLM unpacks every bundle that has an image.
func fromImages(resolution olmcore.Resolution, namespace string, config installplan.Config) map[string]bool {
	names := map[string]bool{}
	for _, o := range resolution.Operators {
		if hasImageAlone(o) {
			names[o.Name] = true
		}
	}
	if !slices.ContainsFunc(resolution.Operators, hasImageAndObjects) {
		return names // no other operator has an image
	}
	limit := cmp.Or(config.MaxStatusBytes, installplan.DefaultMaxStatusBytes)
	total, savings := sizes(resolution, namespace)
	least := total
	for _, s := range savings {
		least -= s.bytes
	}
	if least > limit {
		return names
	}
	for _, s := range savings {
		if total <= limit {
			break
		}
		names[s.name] = true
		total -= s.bytes
	}
	return names
}

// saving is the number of bytes by which a plan becomes smaller if the bundle of an operator is unpacked.
type saving struct {
	name  string
	bytes int
}

// sizes returns the size of the plan of a resolution without unpacked bundles, and what unpacking each bundle saves,
// largest first. Operators with an image alone are not counted.
func sizes(resolution olmcore.Resolution, namespace string) (total int, savings []saving) {
	for _, o := range resolution.Operators {
		if hasImageAlone(o) {
			continue
		}
		steps, err := bundle.Steps(o, namespace, bundle.Literal)
		if err != nil {
			continue // the error is reported when the plan is created
		}
		literal := bytesOf(steps, nil)
		total += literal
		if !hasImageAndObjects(o) {
			continue
		}
		if saved := literal - unpackedBytes(o, namespace); saved > 0 {
			savings = append(savings, saving{o.Name, saved})
		}
	}
	for _, s := range resolution.Generated {
		if step, err := subscriptionStep(s, namespace); err == nil {
			total += bytesOf([]*v1alpha1.Step{step}, nil)
		}
	}
	slices.SortFunc(savings, func(a, b saving) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name)) })
	return total, savings
}

// hasImageAlone reports whether the catalog describes an operator by the image of its bundle alone.
func hasImageAlone(o olmcore.Operator) bool {
	return o.Bundle.Image != "" && len(o.Bundle.Objects) == 0
}

// hasImageAndObjects reports whether the objects of an operator can also be read from the image of its bundle.
func hasImageAndObjects(o olmcore.Operator) bool {
	return o.Bundle.Image != "" && len(o.Bundle.Objects) > 0
}

// unpackedBytes returns the size of an operator in a plan if its bundle is unpacked: its steps reference a ConfigMap,
// and a lookup is added. Both contain the properties.
func unpackedBytes(o olmcore.Operator, namespace string) int {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Catalog.Namespace, Name: bundle.Name(o.Bundle.Image)}}
	steps, _ := bundle.Steps(o, namespace, references(cm, strings.Repeat("0", digestLength), o)) // the caller checked that the steps are valid
	lookup, _ := bundle.NewLookup(o, time.Time{})
	lookup.Conditions = nil
	return bytesOf(steps, []v1alpha1.BundleLookup{lookup})
}

// bytesOf returns the size of steps and lookups in the status of a plan.
func bytesOf(steps []*v1alpha1.Step, lookups []v1alpha1.BundleLookup) (bytes int) {
	for _, s := range steps {
		data, _ := json.Marshal(s) // strings always encode
		bytes += len(data)
	}
	for i := range lookups {
		data, _ := json.Marshal(&lookups[i])
		bytes += len(data)
	}
	return bytes
}
