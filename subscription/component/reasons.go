// SPDX-License-Identifier: Apache-2.0

package component

// Reasons of actions.
const (
	// ReasonLabelMissing: an object of an operator lacks the operator's component label.
	ReasonLabelMissing = "ComponentLabelMissing"
	// ReasonLabelStale: a Subscription carries the component label of a package that it
	// does not follow any more.
	ReasonLabelStale = "ComponentLabelStale"
	// ReasonOperatorMissing: something carries a component label whose Operator object
	// does not exist.
	ReasonOperatorMissing = "OperatorMissing"
	// ReasonStatusObserved: the status follows what was observed.
	ReasonStatusObserved = "StatusObserved"
)

// Reasons of Diagnostics.
const (
	// ReasonLabelKeyInvalid: package and namespace, or the name of an Operator object,
	// give no valid label key, so the operator's objects stay unlabelled. Use another name.
	ReasonLabelKeyInvalid = "LabelKeyInvalid"
	// ReasonOperatorRefsCut: an Operator object does not list all its components, because
	// there are too many. Select them by their label instead.
	ReasonOperatorRefsCut = "OperatorRefsCut"
)
