// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// ReasonNamespaceTerminating: a namespace is being deleted, so nothing is created in it. There is nothing to do.
const ReasonNamespaceTerminating = "NamespaceTerminating"

// withoutDoomed leaves out what would be created in a namespace that is being deleted: the API server refuses it, and a
// deletion is never taken back. A namespace that cannot be read does not count as being deleted: what was decided, and
// is remembered as told, must not be lost for it.
func withoutDoomed(ctx context.Context, r olmcore.Reader, result olmcore.Result) olmcore.Result {
	doomed := map[string]*corev1.Namespace{}
	var kept []olmcore.Action
	for _, a := range result.Actions {
		verb, target, _ := a.Describe()
		if verb != olmcore.VerbCreate || target.Namespace == "" {
			kept = append(kept, a)
			continue
		}
		namespace, asked := doomed[target.Namespace]
		if !asked {
			var err error
			namespace, err = olmcore.Get[*corev1.Namespace](ctx, r, "", target.Namespace)
			if err != nil || namespace != nil && namespace.DeletionTimestamp == nil && namespace.Status.Phase != corev1.NamespaceTerminating {
				namespace = nil
			}
			doomed[target.Namespace] = namespace
			if namespace != nil {
				result.Diagnostics = append(
					slices.Clip(result.Diagnostics),
					olmcore.Diagnose(olmcore.Info, ReasonNamespaceTerminating, olmcore.RefOf(namespace), "",
						"namespace %s is being deleted, so nothing is created in it", target.Namespace),
				)
			}
		}
		if namespace == nil {
			kept = append(kept, a)
		}
	}
	result.Actions = kept
	return result
}
