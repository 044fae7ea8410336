// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"github.com/operator-framework/api/crds"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// Kubeconfig is a file that names a server.
func Kubeconfig(url string) []byte {
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: s, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: s, user: u}}], users: [{name: u}]}
`, url)
}

// Definitions are OLM's CustomResourceDefinitions, without which no command starts.
func Definitions() []olmcore.Object {
	return []olmcore.Object{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.OperatorCondition(), crds.OperatorGroup(), crds.Operator(), crds.Subscription(),
	}
}

// RunOLM makes an OLM run in a namespace of a cluster, beside which no command starts.
func RunOLM(c *fake.Cluster, namespace string) error {
	const account, role = "olm-operator-serviceaccount", "system:controller:operator-lifecycle-manager"
	labels := map[string]string{"app": "olm-operator"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "olm-operator"}}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.ServiceAccountName = account
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "olm-operator", Image: "registry.example.com/olm:latest"}}
	return c.Create(d,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-" + namespace},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}})
}
