// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/subscription/health/internal/rules"
)

func ExampleEvaluate() {
	s := &v1alpha1.Subscription{Spec: &v1alpha1.SubscriptionSpec{Package: "etcd"}}
	s.Status.State, s.Status.InstallPlanRef = v1alpha1.SubscriptionStateUpgradePending, &corev1.ObjectReference{Name: "install-x2"}
	s.Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionInstallPlanPending, Status: "True", Reason: "RequiresApproval"}}
	r, err := rules.Evaluate(s)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Status, r.KStatus(), r.Message)
	// Output: Suspended InProgress InstallPlan install-x2 waits for approval
}

func ExampleArgoCD() {
	script, err := rules.ArgoCD("InstallPlan")
	if err != nil {
		panic(err)
	}
	_, rows, _ := strings.Cut(script, "-- Complete\n")
	first, _, _ := strings.Cut(rows, "\n\n")
	fmt.Println(first)
	// Output:
	// if at(obj, "status", "phase") == "Complete" then
	//   hs.status = "Healthy"
	//   hs.message = "all steps are done"
	//   return hs
	// end
}

func ExampleFlux() {
	check, err := rules.Flux("ClusterServiceVersion")
	if err != nil {
		panic(err)
	}
	fmt.Println(check.Current)
	// Output:
	// type(metadata) == map && has(metadata.deletionTimestamp) && type(metadata.deletionTimestamp) == string && metadata.deletionTimestamp != '' ? false :
	// type(status) == map && has(status.phase) && status.phase == 'Succeeded' ? true :
	// false
}
