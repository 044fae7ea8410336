// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// RunAPIService sets the condition Available. An APIService without a Service is served locally. Another one is
// available if its Service exists and selects the Pods of an available Deployment, or ready Pods.
func (c *Servers) RunAPIService(key olmcore.Key) {
	service := store.Get[*apiregistrationv1.APIService](c.store, store.APIServiceKind, "", key.Name)
	if service == nil || service.DeletionTimestamp != nil {
		return
	}
	status, reason, message := c.apiServiceState(service)
	want := apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: status, Reason: reason, Message: message,
		LastTransitionTime: olmcore.Timestamp(c.now())}
	next := service.DeepCopy()
	found := false
	for i, have := range next.Status.Conditions {
		if have.Type != want.Type {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		next.Status.Conditions[i], found = want, true
	}
	if !found {
		next.Status.Conditions = append(next.Status.Conditions, want)
	}
	c.store.ReplaceStatus(c.store.Table(store.APIServiceKind), service, next)
}

func (c *Servers) apiServiceState(a *apiregistrationv1.APIService) (status apiregistrationv1.ConditionStatus, reason, message string) {
	ref := a.Spec.Service
	if ref == nil {
		return apiregistrationv1.ConditionTrue, "Local", "Local APIServices are always available"
	}
	service := store.Get[*corev1.Service](c.store, store.ServiceKind, ref.Namespace, ref.Name)
	if service == nil {
		return apiregistrationv1.ConditionFalse, "ServiceNotFound", fmt.Sprintf("service/%s in %q is not present", ref.Name, ref.Namespace)
	}
	if deployments, pods := c.endpoints(service); len(deployments)+len(pods) > 0 {
		return apiregistrationv1.ConditionTrue, "Passed", "all checks passed"
	}
	return apiregistrationv1.ConditionFalse, "MissingEndpoints",
		fmt.Sprintf("endpoints for service/%s in %q have no addresses", ref.Name, ref.Namespace)
}
