// SPDX-License-Identifier: Apache-2.0

package create_test

import "github.com/olmcore/olm/internal/plantest"

// What the tests of installplan and the packages below it share.
const (
	bundleImage      = plantest.BundleImage
	complete         = plantest.Complete
	etcdCSV          = plantest.EtcdCSV
	failed           = plantest.Failed
	installing       = plantest.Installing
	none             = plantest.None
	ns               = plantest.NS
	present          = plantest.Present
	requiresApproval = plantest.RequiresApproval
	unknown          = plantest.Unknown
)

var (
	ago               = plantest.Ago
	anySubscription   = plantest.AnySubscription
	bare              = plantest.Bare
	completed         = plantest.Completed
	condition         = plantest.Condition
	conditionsOf      = plantest.ConditionsOf
	crdObject         = plantest.CRDObject
	createInput       = plantest.CreateInput
	csv               = plantest.CSV
	csvStep           = plantest.CSVStep
	current           = plantest.Current
	describe          = plantest.Describe
	filled            = plantest.Filled
	group             = plantest.Group
	imageOf           = plantest.ImageOf
	installs          = plantest.Installs
	lookup            = plantest.Lookup
	made              = plantest.Made
	manual            = plantest.Manual
	maybe             = plantest.Maybe
	meta              = plantest.Meta
	noon              = plantest.Noon
	operator          = plantest.Operator
	ownerRef          = plantest.OwnerRef
	plan              = plantest.Plan
	planned           = plantest.Planned
	publishedOperator = plantest.PublishedOperator
	reader            = plantest.Reader
	reasons           = plantest.Reasons
	referring         = plantest.Referring
	refersTo          = plantest.RefersTo
	rich              = plantest.Rich
	roleStep          = plantest.RoleStep
	rules             = plantest.Rules
	same              = plantest.Same
	scoped            = plantest.Scoped
	statuses          = plantest.Statuses
	subscription      = plantest.Subscription
)
