// SPDX-License-Identifier: Apache-2.0

package serving

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// Objects are what the Deployments that serve webhooks or APIs need, and who calls them. Gather fills them; they are
// looked at only for a ClusterServiceVersion with webhooks or owned APIServices. Lists may hold more than their
// comments name. d stands for the name of such a Deployment, with dashes for its dots.
type Objects struct {
	// Services are those named <d>-service, Secrets those named <d>-service-cert, of the namespace.
	Services olmcore.Observed[*corev1.Service]
	Secrets  olmcore.Observed[*corev1.Secret]
	// Roles are those named <d>-service-cert; RoleBindings those of that name in the namespace and those of kube-system
	// that let a Deployment read the configuration of extension API servers.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// ClusterRoleBindings are those that let a Deployment delegate authentication.
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Pods are those of the Deployments that serve an APIService which is not available; none otherwise.
	Pods olmcore.Observed[*corev1.Pod]
	// ValidatingWebhookConfigurations and MutatingWebhookConfigurations are those that carry the owner labels of the
	// ClusterServiceVersion, those of other versions of its namespace that call the same Services, and those with the
	// names that its own are given.
	ValidatingWebhookConfigurations olmcore.Observed[*admissionregistrationv1.ValidatingWebhookConfiguration]
	MutatingWebhookConfigurations   olmcore.Observed[*admissionregistrationv1.MutatingWebhookConfiguration]
}

// VisitLists visits every list of the Objects. The names of the fields begin with "Serving.".
func (o *Objects) VisitLists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "Serving.Services", &o.Services, olmcore.Optional)
	olmcore.VisitList(v, "Serving.Secrets", &o.Secrets, olmcore.Optional)
	olmcore.VisitList(v, "Serving.Roles", &o.Roles, olmcore.Optional)
	olmcore.VisitList(v, "Serving.RoleBindings", &o.RoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "Serving.ClusterRoleBindings", &o.ClusterRoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "Serving.Pods", &o.Pods, olmcore.Optional)
	olmcore.VisitList(v, "Serving.ValidatingWebhookConfigurations", &o.ValidatingWebhookConfigurations, olmcore.Optional)
	olmcore.VisitList(v, "Serving.MutatingWebhookConfigurations", &o.MutatingWebhookConfigurations, olmcore.Optional)
}
