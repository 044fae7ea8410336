// SPDX-License-Identifier: Apache-2.0

package serving

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Objects contains the objects that Deployments need to serve webhooks or APIs, and the webhook configurations that
// call them. Gather of package csv fills it. The lists are used only for a ClusterServiceVersion with webhooks or owned
// APIServices. Lists may contain more objects than their comments name. In the comments, <d> is the name of a
// Deployment that serves webhooks or APIs, with dashes instead of dots.
type Objects struct {
	// Services contains the Services named <d>-service in the namespace. Secrets contains the Secrets named
	// <d>-service-cert.
	Services olmcore.Observed[*corev1.Service]
	Secrets  olmcore.Observed[*corev1.Secret]
	// Roles contains the Roles named <d>-service-cert in the namespace. RoleBindings contains the RoleBindings with the
	// same names, and those in kube-system that grant a Deployment the role extension-apiserver-authentication-reader.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// ClusterRoleBindings contains the ClusterRoleBindings that grant a Deployment the ClusterRole system:auth-delegator.
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Pods contains the Pods of the Deployments behind unavailable APIServices. The list is empty if all APIServices are
	// available.
	Pods olmcore.Observed[*corev1.Pod]
	// ValidatingWebhookConfigurations and MutatingWebhookConfigurations contain these configurations:
	//  - those with the owner labels of the ClusterServiceVersion
	//  - those of other versions in its namespace that call the same Services
	//  - those whose name is the computed name of one of the ClusterServiceVersion's own configurations
	ValidatingWebhookConfigurations olmcore.Observed[*admissionregistrationv1.ValidatingWebhookConfiguration]
	MutatingWebhookConfigurations   olmcore.Observed[*admissionregistrationv1.MutatingWebhookConfiguration]
}

// VisitLists visits every list of o. The field names that it passes to v have the prefix "Serving.".
func (o *Objects) VisitLists(v *inputs.ListVisit) {
	inputs.VisitList(v, "Serving.Services", &o.Services, inputs.Optional)
	inputs.VisitList(v, "Serving.Secrets", &o.Secrets, inputs.Optional)
	inputs.VisitList(v, "Serving.Roles", &o.Roles, inputs.Optional)
	inputs.VisitList(v, "Serving.RoleBindings", &o.RoleBindings, inputs.Optional)
	inputs.VisitList(v, "Serving.ClusterRoleBindings", &o.ClusterRoleBindings, inputs.Optional)
	inputs.VisitList(v, "Serving.Pods", &o.Pods, inputs.Optional)
	inputs.VisitList(v, "Serving.ValidatingWebhookConfigurations", &o.ValidatingWebhookConfigurations, inputs.Optional)
	inputs.VisitList(v, "Serving.MutatingWebhookConfigurations", &o.MutatingWebhookConfigurations, inputs.Optional)
}
