// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// KubectlGet is the command that exports all kinds that a decision may look at.
func KubectlGet() string {
	var resources []string
	for _, k := range olmcore.Kinds() {
		if len(k.ReadBy) > 0 {
			resources = append(resources, k.Resource())
		}
	}
	return "kubectl get " + strings.Join(resources, ",") + " -A -o yaml"
}

// Scopes returns what an export tells of: the kinds that occur in it and, when it
// is complete, all kinds that a decision may look at.
func Scopes(objects []olmcore.Object, complete bool) []olmcore.Scope {
	var scopes []olmcore.Scope
	seen := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if kind := olmcore.GVKOf(o).GroupKind(); !seen[kind] {
			seen[kind] = true
			scopes = append(scopes, olmcore.Scope{Kind: kind})
		}
	}
	for _, k := range olmcore.Kinds() {
		if complete && len(k.ReadBy) > 0 && !seen[k.GroupKind()] {
			scopes = append(scopes, olmcore.Scope{Kind: k.GroupKind()})
		}
	}
	return scopes
}
