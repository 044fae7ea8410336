// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

const variable = deployment.ConditionVariable

// variables sets the variable OPERATOR_CONDITION_NAME in containers of the operator that lost it. Package csv installs
// Deployments with the variable, and writes them while the CSV is not Succeeded.
func variables(f *facts) olmcore.Result {
	if f.csv == nil || f.csv.DeletionTimestamp != nil || f.csv.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		return olmcore.Result{}
	}
	listed := sets.New(f.condition.Spec.Deployments...)
	var updates []olmcore.Action
	for _, d := range f.in.Deployments.Items {
		isOurs := listed.Has(d.Name) && d.DeletionTimestamp == nil && model.OwnsDeployment(f.csv, d)
		if !isOurs || deployment.NamesCondition(&d.Spec.Template.Spec, f.in.Key.Name) {
			continue
		}
		after := d.DeepCopy()
		deployment.NameCondition(&after.Spec.Template.Spec, f.in.Key.Name)
		updates = append(updates, olmcore.UpdateOf(d, after, olmcore.Cause{
			Reason: ReasonVariableMissing, Message: "a container of Deployment " + d.Name + " lacks the variable " + variable,
		}))
	}
	slices.SortFunc(updates, deployment.ByTarget)
	return write(updates...)
}
