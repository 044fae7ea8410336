// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/olmcore/olm/examples/controllerruntime/config"
)

// ManagerRoles returns the ClusterRoles that the manifests of the manager bring.
func ManagerRoles() ([]*rbacv1.ClusterRole, error) {
	objects, err := config.Render("default")
	if err != nil {
		return nil, err
	}
	var roles []*rbacv1.ClusterRole
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// AsManager connects as a user of that name, who may do what the manifests of the manager allow and nothing else.
func (c *ControlPlane) AsManager(ctx context.Context, name string) (*rest.Config, error) {
	roles, err := ManagerRoles()
	if err != nil {
		return nil, err
	}
	return c.AsBoundTo(ctx, name, roles...)
}

// AsBoundTo connects as a user of that name, who may do what ClusterRoles allow. They are created, or brought into the
// form that they have here.
func (c *ControlPlane) AsBoundTo(ctx context.Context, name string, roles ...*rbacv1.ClusterRole) (*rest.Config, error) {
	admin, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	user, err := c.env.ControlPlane.AddUser(envtest.User{Name: name}, rest.CopyConfig(c.Config))
	if err != nil {
		return nil, err
	}
	for _, role := range roles {
		if err := bind(ctx, admin.RbacV1(), name, role); err != nil {
			return nil, err
		}
		if len(role.Rules) == 0 {
			continue // it aggregates those of others
		}
		if err := allowed(ctx, admin, name, role.Rules[len(role.Rules)-1]); err != nil {
			return nil, fmt.Errorf("%s is not bound to ClusterRole %s: %w", name, role.Name, err)
		}
	}
	return user.Config(), nil
}

func bind(ctx context.Context, client rbacclient.RbacV1Interface, user string, role *rbacv1.ClusterRole) error {
	if _, err := client.ClusterRoles().Create(ctx, role.DeepCopy(), metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = client.ClusterRoles().Update(ctx, role.DeepCopy(), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	_, err := client.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name + "-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// allowed waits until the API server knows of a binding, by one of its rules.
func allowed(ctx context.Context, client kubernetes.Interface, user string, rule rbacv1.PolicyRule) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0]},
	}}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

// Refused returns the requests that users whose names begin with a prefix made as themselves, and were not allowed to.
func (c *ControlPlane) Refused(prefix string) ([]Request, error) {
	requests, err := c.Requests("")
	return slices.DeleteFunc(requests, func(r Request) bool {
		return r.Status.Code != http.StatusForbidden || r.ImpersonatedUser != nil || !strings.HasPrefix(r.User.Username, prefix)
	}), err
}

// RightsUsed returns what rights requests that were granted needed, as "group/resource verb".
func RightsUsed(requests []Request) sets.Set[string] {
	used := sets.New[string]()
	for _, r := range requests {
		if r.Status.Code == http.StatusForbidden || r.Object.Resource == "" {
			continue
		}
		if r.ImpersonatedUser != nil {
			used.Insert("/serviceaccounts impersonate")
			continue
		}
		resource := r.Object.Resource
		if r.Object.Subresource != "" {
			resource += "/" + r.Object.Subresource
		}
		used.Insert(r.Object.APIGroup + "/" + resource + " " + r.Verb)
	}
	return used
}
