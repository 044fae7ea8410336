// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// KubectlGet returns the command that exports the objects of all kinds that a decision reads.
func KubectlGet() string {
	var resources []string
	for _, k := range olmcore.Kinds() {
		if len(k.ReadBy) > 0 {
			resources = append(resources, k.Resource())
		}
	}
	return "kubectl get " + strings.Join(resources, ",") + " -A -o yaml"
}

// Scopes returns the scopes that an export covers: the kinds of its objects and, if it is complete, all kinds that a
// decision reads.
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
