-- Health of ClusterServiceVersion objects for Argo CD, written from the table of
-- github.com/olmcore/olm/subscription/health/internal/rules: change it there.
-- Key in argocd-cm: resource.customizations.health.operators.coreos.com_ClusterServiceVersion
local hs = {}

local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then
    return value
  end
  return ""
end

local function oneOf(value, list)
  for _, entry in ipairs(list) do
    if value == entry then
      return true
    end
  end
  return false
end

local function condition(kind, status, reasons)
  local conditions = at(obj, "status", "conditions")
  if type(conditions) ~= "table" then
    return nil
  end
  for _, c in ipairs(conditions) do
    if type(c) == "table" and c.type == kind and c.status == status and (reasons == nil or oneOf(c.reason, reasons)) then
      return c
    end
  end
  return nil
end

local function said(value, otherwise)
  if text(value) ~= "" then
    return value
  end
  return otherwise
end

-- Deleting
if text(at(obj, "metadata", "deletionTimestamp")) ~= "" then
  hs.status = "Progressing"
  hs.message = "the ClusterServiceVersion is being deleted"
  return hs
end

-- Succeeded
if at(obj, "status", "phase") == "Succeeded" then
  hs.status = "Healthy"
  hs.message = said(at(obj, "status", "message"), "the operator is installed")
  return hs
end

-- Failed
if oneOf(at(obj, "status", "phase"), {"Failed", "Unknown"}) then
  hs.status = "Degraded"
  hs.message = said(at(obj, "status", "message"), "the operator is not installed")
  return hs
end

-- RequirementsNotMet
if at(obj, "status", "phase") == "Pending" and at(obj, "status", "reason") == "RequirementsNotMet" then
  hs.status = "Progressing"
  hs.message = said(at(obj, "status", "message"), "requirements are not met")
  return hs
end

-- OperatorConditionNotUpgradeable
if at(obj, "status", "phase") == "Pending" and at(obj, "status", "reason") == "OperatorConditionNotUpgradeable" then
  hs.status = "Progressing"
  hs.message = said(at(obj, "status", "message"), "the operator that it replaces does not allow its upgrade")
  return hs
end

-- Installing
if oneOf(at(obj, "status", "phase"), {"Pending", "InstallReady", "Installing"}) then
  hs.status = "Progressing"
  hs.message = said(at(obj, "status", "message"), "the operator is being installed")
  return hs
end

-- Replacing
if oneOf(at(obj, "status", "phase"), {"Replacing", "Deleting"}) then
  hs.status = "Progressing"
  hs.message = said(at(obj, "status", "message"), "a newer version replaces it")
  return hs
end

-- UnknownPhase
if text(at(obj, "status", "phase")) ~= "" then
  hs.status = "Unknown"
  hs.message = "its phase " .. text(at(obj, "status", "phase")) .. " is unknown"
  return hs
end

-- NotYetReconciled
hs.status = "Progressing"
hs.message = "it has no phase yet"
return hs
