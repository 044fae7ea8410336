// SPDX-License-Identifier: Apache-2.0

// Package installer determines the ServiceAccount that installs operators in a namespace. The packages csv and
// installplan use it.
package installer

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
)

// AccountOf returns the ServiceAccount that installs operators in the namespace of an OperatorGroup, or nil if the
// group names none. A nil group names none. confirmed is false if the spec names a ServiceAccount, but the status does
// not contain it or contains one of another namespace. Then nothing may be installed, with any identity.
//
// Differs: OLM uses any account that the status names.
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
