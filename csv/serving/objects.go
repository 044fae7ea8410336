// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// Objects are what the Deployments that serve webhooks or APIs need, and who calls them. Gather fills them; they are
// looked at only for a ClusterServiceVersion with webhooks or owned APIServices. Lists may hold more than their comments
// name. d stands for the name of such a Deployment, with dashes for its dots.
type Objects struct {
	// Services are those named <d>-service, Secrets those named <d>-service-cert, of the namespace.
	Services olmcore.Observed[*corev1.Service]
	Secrets  olmcore.Observed[*corev1.Secret]
	// Roles are those named <d>-service-cert; RoleBindings those of that name in the namespace and those of kube-system that
	// let a Deployment read the configuration of extension API servers.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// ClusterRoleBindings are those that let a Deployment delegate authentication.
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Pods are those of the Deployments that serve an APIService which is not available; none otherwise.
	Pods olmcore.Observed[*corev1.Pod]
	// ValidatingWebhookConfigurations and MutatingWebhookConfigurations are those that carry the owner labels of the
	// ClusterServiceVersion, those of other versions of its namespace that call the same Services, and those with the names
	// that its own are given.
	ValidatingWebhookConfigurations olmcore.Observed[*admissionregistrationv1.ValidatingWebhookConfiguration]
	MutatingWebhookConfigurations   olmcore.Observed[*admissionregistrationv1.MutatingWebhookConfiguration]
}

// Validate returns an *olmcore.InputError for a list that breaks its contract, nil for none. Its field begins with
// "Serving".
func (o *Objects) Validate() error {
	return cmp.Or(
		olmcore.ValidateList("Serving.Services", o.Services),
		olmcore.ValidateList("Serving.Secrets", o.Secrets),
		olmcore.ValidateList("Serving.Roles", o.Roles),
		olmcore.ValidateList("Serving.RoleBindings", o.RoleBindings),
		olmcore.ValidateList("Serving.ClusterRoleBindings", o.ClusterRoleBindings),
		olmcore.ValidateList("Serving.Pods", o.Pods),
		olmcore.ValidateList("Serving.ValidatingWebhookConfigurations", o.ValidatingWebhookConfigurations),
		olmcore.ValidateList("Serving.MutatingWebhookConfigurations", o.MutatingWebhookConfigurations),
	)
}

// Cover hands each field to a Coverage.
func (o *Objects) Cover(c *olmcore.Coverage) {
	olmcore.CoverObjects(c, o.Services)
	olmcore.CoverObjects(c, o.Secrets)
	olmcore.CoverObjects(c, o.Roles)
	olmcore.CoverObjects(c, o.RoleBindings)
	olmcore.CoverObjects(c, o.ClusterRoleBindings)
	olmcore.CoverObjects(c, o.Pods)
	olmcore.CoverObjects(c, o.ValidatingWebhookConfigurations)
	olmcore.CoverObjects(c, o.MutatingWebhookConfigurations)
}
