// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const (
	// scoped is an OperatorGroup that lets plans do what an account may.
	scoped = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group}
spec: {targetNamespaces: [NS], serviceAccountName: installer}
`
	installer = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer}}`
	// everything is what the account may do in its namespace.
	everything = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: installer}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: installer}
subjects: [{kind: ServiceAccount, name: installer, namespace: NS}]
`
)

func TestInstallPlansRunAsAnAccount(t *testing.T) {
	t.Parallel()
	tell(t, "that the OperatorGroup names, with the permissions that this has", func(s *story) {
		s.given(installer)
		s.given(everything)
		s.given(scoped)
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, "installer", s.plan("alpha").Status.AttenuatedServiceAccountRef.Name)
	})
	tell(t, "and waits while it does not exist", func(s *story) {
		s.given(scoped)
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.until("there is a plan", func() bool { return s.plan("alpha").Name != "" })
		says[*v1alpha1.InstallPlan](s, s.plan("alpha").Name, "Installed",
			"False InstallCheckFailed: please make sure the service account exists. sa=installer operatorgroup=NS/group")
		s.given(everything)
		s.given(installer)
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "and goes on once it gets the permissions that it lacks", func(s *story) {
		s.given(installer)
		s.given(scoped)
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.until("it says what it lacks", func() bool {
			return strings.HasPrefix(s.plan("alpha").Status.Message, "retrying execution due to error: error creating csv alpha.v1.0.0: clusterserviceversions.operators.coreos.com is forbidden: "+
				s.text(`User "system:serviceaccount:NS:installer" cannot create resource "clusterserviceversions"`))
		})
		require.Equal(s, v1alpha1.InstallPlanPhaseInstalling, s.plan("alpha").Status.Phase)
		s.given(everything)
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "and cannot make what is outside of its namespace", func(s *story) {
		s.given(installer)
		s.given(everything)
		s.given(scoped)
		s.catalog("community", alphaWith(brings(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-extra}, rules: []}`)))
		s.subscribe("alpha")
		s.until("it says what it lacks", func() bool {
			return strings.Contains(s.plan("alpha").Status.Message, s.text(`User "system:serviceaccount:NS:installer" cannot create resource "clusterroles"`))
		})
	})
	tell(t, "and the OperatorGroup says which one", func(s *story) {
		s.given(installer)
		s.given(scoped)
		eventually(s, "the account is confirmed", func() *corev1.ObjectReference {
			ref := get[*operatorsv1.OperatorGroup](s, "group").Status.ServiceAccountRef
			if ref == nil {
				return nil
			}
			return &corev1.ObjectReference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		}, &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: s.ns, Name: "installer"})
	})
	tell(t, "which defines the CustomResourceDefinitions all the same, as these are the controller's", func(s *story) {
		s.given(installer)
		s.given(everything)
		s.given(scoped)
		s.catalog("community", alphaWith(owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
	})
}
