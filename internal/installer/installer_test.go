// SPDX-License-Identifier: Apache-2.0

package installer_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/installer"
)

// TestAGroupsStatusNamesNoOtherAccountThanItsSpec: whoever may write the status of a group chooses no account of
// another name or namespace.
func TestAGroupsStatusNamesNoOtherAccountThanItsSpec(t *testing.T) {
	ref := func(namespace, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: namespace, Name: name, UID: "uid"}
	}
	for name, c := range map[string]struct {
		spec      string
		status    *corev1.ObjectReference
		want      *corev1.ObjectReference
		confirmed bool
	}{
		"none prescribed":                       {confirmed: true},
		"none prescribed, the status names one": {status: ref("kube-system", "admin"), confirmed: true},
		"not confirmed yet":                     {spec: "scoped"},
		"confirmed":                             {spec: "scoped", status: ref("ops", "scoped"), want: ref("ops", "scoped"), confirmed: true},
		"confirmed without a namespace":         {spec: "scoped", status: ref("", "scoped"), want: ref("", "scoped"), confirmed: true},
		"another name":                          {spec: "scoped", status: ref("ops", "admin")},
		"another namespace":                     {spec: "scoped", status: ref("kube-system", "scoped")},
	} {
		t.Run(name, func(t *testing.T) {
			g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}
			g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = c.spec, c.status
			got, confirmed := installer.AccountOf(g)
			require.Equal(t, c.want, got)
			require.Equal(t, c.confirmed, confirmed)
		})
	}
	got, confirmed := installer.AccountOf(nil)
	require.Nil(t, got)
	require.True(t, confirmed)
}
