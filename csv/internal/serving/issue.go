// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Issue checks the owned APIServices and the objects that they need. It returns a message about the missing and
// differing objects, or an empty string if there are none. The message contains only the first difference of each
// APIService. The check stops at an APIService that may not be taken over. mendable is true if a new installation
// corrects at least one difference. It is false if an APIService may not be taken over.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/apiservices.go, checkAPIServiceResources.
// Differs: OLM accepts only one authority in the caBundle. This library accepts two during a certificate rotation. OLM
// also reinstalls the operator if a ServiceAccount is missing. This library does not, because an installation does not
// create ServiceAccounts.
func (s Clients) Issue() (problem string, mendable bool) {
	var problems []error
	for _, a := range s.apis() {
		err := issueOf(s, a)
		if err == nil {
			continue
		}
		problems = append(problems, err)
		if errors.As(err, new(unadoptableError)) {
			return utilerrors.NewAggregate(problems).Error(), false
		}
		mendable = mendable || !errors.As(err, new(accountError))
	}
	if len(problems) == 0 {
		return "", false
	}
	return utilerrors.NewAggregate(problems).Error(), mendable
}

// accountError means that the ServiceAccount of a Deployment does not exist. A new installation does not create it.
type accountError struct{ error }

// unadoptableError contains the name of an APIService that may not be taken over.
type unadoptableError string

func (e unadoptableError) Error() string { return string(e) + " is unadoptable" }

func issueOf(s Clients, a *api) error {
	switch {
	case a.live == nil:
		return notFound(apiregistrationv1.GroupName, "apiservice", a.name)
	case !s.isAdoptable(a.live):
		return unadoptableError(a.name)
	case s.Objects == nil:
		return nil
	}
	trusted, err := checkReference(s, a)
	if err != nil {
		return err
	}
	d, err := checkCertificate(s, a, trusted)
	if err != nil {
		return err
	}
	return checkRights(s, a, d)
}

// checkReference checks the Service and the APIService's reference to it. It returns the hashes of the authorities that
// the APIService trusts.
func checkReference(s Clients, a *api) (trusted sets.Set[string], err error) {
	_, exists := model.Find(s.Objects.Services.Items, s.CSV.Namespace, a.service())
	bundle := s.Memory.Bundle(a.live.Spec.CABundle)
	switch {
	case !exists && s.Objects.Services.Complete:
		return nil, notFound("", "service", a.service())
	case !a.calls(s.CSV.Namespace):
		return nil, errors.New("found APIService and service reference mismatch")
	case len(bundle) == 0:
		return nil, fmt.Errorf("caBundle of APIService %s has no certificate", a.name)
	}
	trusted = sets.New(Hash(a.live.Spec.CABundle))
	for _, authority := range bundle {
		trusted.Insert(Hash(authority.PEM))
	}
	return trusted, nil
}

// checkCertificate checks the Secret, and the Deployment that serves with it.
func checkCertificate(s Clients, a *api, trusted sets.Set[string]) (*appsv1.Deployment, error) {
	name := CertificateName(a.deployment)
	secret, exists := model.Find(s.Objects.Secrets.Items, s.CSV.Namespace, name)
	if exists {
		// An authority may consist of several certificates. It is trusted if all of them are trusted.
		ca := secret.Data[serving.CAKey]
		hash := Hash(ca)
		if !trusted.Has(hash) && s.Memory.Bundle(a.live.Spec.CABundle).Trusts(s.Memory.Bundle(ca)) {
			trusted.Insert(hash)
		}
	}
	switch {
	case !exists && s.Objects.Secrets.Complete:
		return nil, notFound("", "secret", name)
	case exists && len(s.Memory.Bundle(secret.Data[serving.CertKey])) == 0:
		return nil, fmt.Errorf("%s of secret %s has no certificate", serving.CertKey, name)
	case exists && !trusted.Has(secret.Annotations[annotationCAHash]):
		return nil, fmt.Errorf("secret %s CA cert hash does not match expected", name)
	}
	d, exists := model.Find(s.Deployments, s.CSV.Namespace, a.deployment)
	switch {
	case !exists:
		return nil, notFound(appsv1.GroupName, "deployment", a.deployment)
	case !trusted.Has(d.Spec.Template.Annotations[annotationCAHash]):
		return nil, fmt.Errorf("deployment %s CA cert hash does not match expected", a.deployment)
	}
	return d, nil
}

// checkRights checks the permissions of the Deployment's ServiceAccount.
func checkRights(s Clients, a *api, d *appsv1.Deployment) error {
	namespace := s.CSV.Namespace
	name := CertificateName(a.deployment)
	o := s.Objects
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	if _, exists := model.Find(s.ServiceAccounts, namespace, account); !exists {
		return accountError{notFound("", "serviceaccount", account)}
	}
	return cmp.Or(
		missing(o.Roles, rbacv1.GroupName, "role", namespace, name),
		missing(o.RoleBindings, rbacv1.GroupName, "rolebinding", namespace, name),
		missing(o.ClusterRoleBindings, rbacv1.GroupName, "clusterrolebinding", "", DelegatorNames(a.deployment, namespace)...),
		missing(o.RoleBindings, rbacv1.GroupName, "rolebinding", metav1.NamespaceSystem, ReaderNames(a.deployment, namespace)...),
	)
}

// missing returns an error if a list that was read contains no object with one of the names.
func missing[T olmcore.Object](list olmcore.Observed[T], group, kind, namespace string, names ...string) error {
	for _, name := range names {
		if _, exists := model.Find(list.Items, namespace, name); exists {
			return nil
		}
	}
	if !list.Complete {
		return nil
	}
	return notFound(group, kind, names[0])
}

// notFound returns an error in the words of client-go's listers.
func notFound(group, kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind}, name)
}
