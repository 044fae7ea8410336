// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
)

// AccountOf returns the ServiceAccount that an OperatorGroup prescribes for what
// is installed in its namespace, nil when it prescribes none. confirmed is false
// when it prescribes one and its status does not name that account of its own
// namespace: nothing may be installed then, under any identity. A nil group
// prescribes none.
//
// Differs: OLM takes whatever account the status names.
func AccountOf(g *operatorsv1.OperatorGroup) (account *corev1.ObjectReference, confirmed bool) {
	if g == nil || g.Spec.ServiceAccountName == "" {
		return nil, true
	}
	ref := g.Status.ServiceAccountRef
	if ref == nil || ref.Name != g.Spec.ServiceAccountName || ref.Namespace != "" && ref.Namespace != g.Namespace {
		return nil, false
	}
	return ref.DeepCopy(), true
}
